/** Lists the webhooks of the active key. */
import './webhooks.css'
import { Anchor, Button, Code } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import type { Column } from '../components/DataTable.tsx'
import { Dialog } from '../components/Dialog.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago, TextLink } from '../components/text.tsx'
import { AgentName } from '../conversations/AgentName.tsx'
import { Icon } from '../shell/icons.tsx'
import { useMe } from '../shell/use-me.ts'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import { summarizeEvents } from './events.ts'
import { type Webhook, webhooksQuery } from './queries.ts'
import { type Doing, WebhookDialogs, WebhookMenuItems } from './WebhookDialogs.tsx'
import { CreateWebhook } from './WebhookForm.tsx'
import { WebhookState } from './WebhookState.tsx'

export function WebhooksPage() {
  const { add } = useSearch({ from: '/shell/webhooks' })
  const { is_allowed: isAllowed } = useMe().webhooks
  const navigate = useNavigate({ from: '/webhooks' })
  const query = useQuery(webhooksQuery)
  const [doing, setDoing] = useState<Doing>()
  const setOpen = (isOpen: boolean) => void navigate({ search: isOpen ? { add: true } : {} })
  const isEmpty = query.data?.data.length === 0
  const agentIds = query.data?.data.flatMap(({ agent_id: id }) => id ?? []) ?? []
  return (
    <>
      <PageHeader title={t('webhooks.title')} about={t('webhooks.about')}>
        {isAllowed && !isEmpty ? <CreateButton onClick={() => setOpen(true)} /> : null}
      </PageHeader>
      <ListView
        label={t('webhooks.title')}
        items="webhooks"
        columns={columnsOf(agentIds)}
        query={query}
        idOf={({ id }) => id}
        nameOf={({ url }) => url}
        search={{}}
        onSearch={() => undefined}
        sorting={{ sort: 'created', order: 'asc' }}
        menu={(webhook) => <WebhookMenuItems webhook={webhook} setDoing={setDoing} />}
        empty={<NoWebhooks isAllowed={isAllowed} onCreate={() => setOpen(true)} />}
      />
      <Dialog
        title={t('webhooks.create')}
        isOpen={add === true && isAllowed}
        onClose={() => setOpen(false)}
        size="lg"
      >
        <CreateWebhook onClose={() => setOpen(false)} />
      </Dialog>
      <WebhookDialogs doing={doing} onClose={() => setDoing(undefined)} />
    </>
  )
}

const columnsOf = (agentIds: readonly string[]): readonly Column<Webhook>[] => [
  {
    name: 'webhooks.url',
    isMain: true,
    render: ({ id, url }) => (
      <TextLink to="/webhooks/$webhookId" params={{ webhookId: id }} size="sm" fw={500}>
        <bdi className="webhook-url">{url}</bdi>
      </TextLink>
    ),
  },
  { name: 'webhooks.state', render: (webhook) => <WebhookState {...webhook} /> },
  { name: 'webhooks.events', render: ({ events }) => summarizeEvents(events) },
  {
    name: 'common.agent',
    render: ({ agent_id: id }) =>
      id === null ? t('common.allAgents') : <AgentName id={id} among={agentIds} />,
  },
  {
    name: 'webhooks.text',
    render: ({ include_text: hasText }) =>
      hasText ? t('webhooks.withText') : <span className="quiet">{t('webhooks.withoutText')}</span>,
  },
  { name: 'webhooks.created', render: ({ created_at: at }) => <Ago seconds={at} /> },
]

function CreateButton({ onClick }: { readonly onClick: () => void }) {
  return (
    <Button leftSection={<Icon name="plus" size={16} />} onClick={onClick}>
      {t('webhooks.create')}
    </Button>
  )
}

interface NoWebhooksProps {
  readonly isAllowed: boolean
  readonly onCreate: () => void
}

function NoWebhooks({ isAllowed, onCreate }: NoWebhooksProps) {
  if (!isAllowed)
    return (
      <Empty icon="webhooks" title={t('webhooks.forbiddenTitle')}>
        {rich('webhooks.forbidden', { setting: <Code>PARLEY_WEBHOOKS=forbidden</Code> })}
      </Empty>
    )
  return (
    <Empty icon="webhooks" title={t('webhooks.none')} action={<CreateButton onClick={onCreate} />}>
      {rich('webhooks.noneHelp', {
        docs: <DocsLink path="/docs/webhooks">{t('webhooks.docs')}</DocsLink>,
        slack: <DocsLink path="/examples/webhook-slack.mjs">{t('webhooks.slack')}</DocsLink>,
        email: <DocsLink path="/examples/webhook-email.mjs">{t('webhooks.email')}</DocsLink>,
      })}
    </Empty>
  )
}

function DocsLink({ path, children }: { readonly path: string; readonly children: string }) {
  return (
    <Anchor href={path} target="_blank" rel="noreferrer" inherit underline="always">
      {children}
    </Anchor>
  )
}
