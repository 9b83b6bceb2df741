/** Lists the deliveries of a webhook, shows their requests, and sends them again. */
import { Button, Code, Menu, Stack, Text } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../api.ts'
import { CodeBlock } from '../components/CopyButton.tsx'
import type { Column } from '../components/DataTable.tsx'
import { Dialog } from '../components/Dialog.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Status, type Tone } from '../components/Status.tsx'
import { Ago, TextLink } from '../components/text.tsx'
import { problemOf } from '../failure.ts'
import { changeSearch } from '../search.ts'
import { showDone, showProblem } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'
import { nameEvent } from './events.ts'
import { type Delivery, deliveriesQuery, refreshWebhooks, type Webhook } from './queries.ts'

/** Maximum number of attempts for a delivery (docs/webhooks.md). */
const MAX_ATTEMPTS = 10

export function Deliveries({ webhook }: { readonly webhook: Webhook }) {
  const { after } = useSearch({ from: '/shell/webhooks/$webhookId' })
  const navigate = useNavigate({ from: '/webhooks/$webhookId' })
  const queries = useQueryClient()
  const query = useQuery({ ...deliveriesQuery(webhook.id, after), placeholderData: keepPreviousData })
  const [shown, setShown] = useState<Delivery>()
  const retry = async ({ id }: Delivery) => {
    await api.webhooks.retry
      .mutate({ webhook_id: webhook.id, delivery_id: id })
      .finally(() => refreshWebhooks(queries))
    showDone(t('webhooks.sentAgain'))
  }
  const sendAgain = (delivery: Delivery) =>
    void retry(delivery).catch((thrown) => showProblem(problemOf(thrown)))
  return (
    <>
      <ListView
        label={t('webhooks.deliveries')}
        items="deliveries"
        columns={[...columns, retryColumn(sendAgain)]}
        query={query}
        idOf={({ id }) => id}
        nameOf={({ type, id }) => `${nameEvent(type)} ${id}`}
        search={{ after }}
        onSearch={(changes) => void navigate({ search: (now) => changeSearch(now, changes) })}
        sorting={{ sort: 'created', order: 'desc' }}
        toolbar={
          <Text size="sm" c="dimmed" flex="1 1 240px">
            {t('webhooks.deliveriesAbout')}
          </Text>
        }
        menu={(delivery) => (
          <>
            <Menu.Item onClick={() => setShown(delivery)}>{t('webhooks.showRequest')}</Menu.Item>
            <Menu.Item onClick={() => sendAgain(delivery)}>{t('webhooks.sendAgain')}</Menu.Item>
          </>
        )}
        empty={
          <Empty icon="send" title={t('webhooks.noDeliveries')}>
            {t('webhooks.noDeliveriesHelp')}
          </Empty>
        }
      />
      <Dialog
        title={t('webhooks.request')}
        isOpen={shown !== undefined}
        onClose={() => setShown(undefined)}
        size="lg"
      >
        {shown === undefined ? null : <DeliveryRequest delivery={shown} />}
      </Dialog>
    </>
  )
}

const states: Readonly<Record<Delivery['state'], readonly [name: string, tone: Tone]>> = {
  pending: [t('webhooks.waiting'), 'active'],
  delivered: [t('webhooks.delivered'), 'good'],
  failed: [t('webhooks.failed'), 'bad'],
}

const columns: readonly Column<Delivery>[] = [
  { name: 'webhooks.event', isMain: true, render: ({ type }) => nameEvent(type) },
  {
    name: 'webhooks.conversation',
    render: ({ conversation_id: id }) =>
      id === null ? (
        <span className="quiet">–</span>
      ) : (
        <TextLink to="/conversations/$conversationId" params={{ conversationId: id }} size="sm">
          <Code fz="inherit">{`…${id.slice(-6)}`}</Code>
        </TextLink>
      ),
  },
  {
    name: 'webhooks.state',
    render: ({ state }) => {
      const [name, tone] = states[state]
      return <Status tone={tone}>{name}</Status>
    },
  },
  {
    name: 'webhooks.attempts',
    isNumber: true,
    render: ({ type, attempts: number, state }) =>
      state === 'delivered' || type === 'webhook.test'
        ? number
        : t('webhooks.attemptsOf', { number, most: MAX_ATTEMPTS }),
  },
  { name: 'webhooks.response', render: (delivery) => <Response {...delivery} /> },
  {
    name: 'webhooks.nextAttempt',
    render: ({ next_at: at }) => (at === null ? <span className="quiet">–</span> : <NextAttempt at={at} />),
  },
  { name: 'webhooks.time', render: ({ created_at: at }) => <Ago seconds={at} /> },
]

/** Shows a button for failed and waiting deliveries; the others have only the menu item. */
const retryColumn = (sendAgain: (delivery: Delivery) => void): Column<Delivery> => ({
  name: 'webhooks.sendAgain',
  isBare: true,
  render: (delivery) =>
    delivery.state === 'delivered' ? null : (
      <Button variant="default" size="xs" onClick={() => sendAgain(delivery)}>
        {t('webhooks.sendAgain')}
      </Button>
    ),
})

function Response({ attempts, last_status: status, last_error: problem }: Delivery) {
  if (attempts === 0 && status === null && problem === null) return <span className="quiet">–</span>
  // The message about a status only repeats the status.
  const isRepeated = status !== null && problem?.endsWith(` ${status}.`) === true
  return (
    <Stack gap={0} className="delivery-problem">
      <Text span size="sm">
        {status ?? t('webhooks.noResponse')}
      </Text>
      {problem === null || isRepeated ? null : (
        <Text span size="xs" c="dimmed">
          {problem}
        </Text>
      )}
    </Stack>
  )
}

function NextAttempt({ at }: { readonly at: number }) {
  const isSoon = at * 1_000 - Date.now() < 60_000
  return isSoon ? t('webhooks.soon') : <Ago seconds={at} />
}

function DeliveryRequest({ delivery: { id, body } }: { readonly delivery: Delivery }) {
  return (
    <Stack gap="md" className="request-body">
      <CodeBlock code={id} what="webhook-id" />
      <CodeBlock code={JSON.stringify(JSON.parse(body), null, 2)} what={t('webhooks.body')} />
    </Stack>
  )
}
