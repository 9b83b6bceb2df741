/** Shows one webhook with its deliveries. */
import './webhooks.css'
import { Anchor, Breadcrumbs, Button, Code, Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { Facts } from '../components/Facts.tsx'
import { MoreActions } from '../components/MoreActions.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { Ago } from '../components/text.tsx'
import { AgentName } from '../conversations/AgentName.tsx'
import { toFailure } from '../failure.ts'
import { renderMoment } from '../format.ts'
import { UnknownPage } from '../shell/ErrorPage.tsx'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { Deliveries } from './Deliveries.tsx'
import { eventTypes, nameEvent } from './events.ts'
import { type Webhook, webhookQuery } from './queries.ts'
import { type Doing, WebhookDialogs, WebhookMenuItems } from './WebhookDialogs.tsx'
import { WebhookState } from './WebhookState.tsx'

export function WebhookPage() {
  const { webhookId } = useParams({ from: '/shell/webhooks/$webhookId' })
  const { data: webhook, error, refetch } = useQuery(webhookQuery(webhookId))
  if (webhook !== undefined) return <KnownWebhook webhook={webhook} />
  if (error === null) return <Loading what="webhook" rows={3} height={96} />
  if (toFailure(error).status === 404) return <UnknownPage />
  return <Failed error={error} what="webhook" retry={() => void refetch()} />
}

function KnownWebhook({ webhook }: { readonly webhook: Webhook }) {
  const navigate = useNavigate()
  const [doing, setDoing] = useState<Doing>()
  return (
    <>
      <Breadcrumbs mb={4}>
        <Anchor component={Link} to="/webhooks" size="sm">
          {t('webhooks.title')}
        </Anchor>
      </Breadcrumbs>
      <div className="webhook-title">
        <PageHeader title={titleOf(webhook.url)}>
          <Button
            leftSection={<Icon name="send" size={16} />}
            onClick={() => setDoing({ what: 'test', webhook })}
          >
            {t('webhooks.test')}
          </Button>
          <MoreActions>
            <WebhookMenuItems webhook={webhook} setDoing={setDoing} />
          </MoreActions>
        </PageHeader>
      </div>
      <Stack gap="lg">
        <WebhookFacts webhook={webhook} />
        <div>
          <Title order={2} mb="sm">
            {t('webhooks.deliveries')}
          </Title>
          <Deliveries webhook={webhook} />
        </div>
      </Stack>
      <WebhookDialogs
        doing={doing}
        onClose={() => setDoing(undefined)}
        onDeleted={() => navigate({ to: '/webhooks' })}
      />
    </>
  )
}

function WebhookFacts({ webhook }: { readonly webhook: Webhook }) {
  const { id, url, events, agent_id: agentId, include_text: hasText, created_at: createdAt } = webhook
  const { previous_valid_until: previousUntil } = webhook
  const isRotating = previousUntil !== null && previousUntil * 1_000 > Date.now()
  const names = eventTypes.filter((type) => events.includes(type)).map(nameEvent)
  return (
    <Facts
      label={t('conversations.details')}
      facts={[
        [t('webhooks.state'), <WebhookState key="state" {...webhook} />],
        ...(url === titleOf(url) ? [] : [[t('webhooks.url'), <bdi key="url">{url}</bdi>] as const]),
        [
          t('webhooks.events'),
          names.length === eventTypes.length ? t('webhooks.allEvents') : names.join(', '),
        ],
        [
          t('common.agent'),
          agentId === null ? t('common.allAgents') : <AgentName key="agent" id={agentId} />,
        ],
        [t('webhooks.text'), hasText ? t('webhooks.withText') : t('webhooks.withoutText')],
        [t('webhooks.created'), <Ago key="created" seconds={createdAt} />],
        [t('webhooks.id'), <Code key="id">{id}</Code>],
        ...(isRotating
          ? [
              [
                t('webhooks.secret'),
                t('webhooks.previousUntil', { when: renderMoment(previousUntil) }),
              ] as const,
            ]
          : []),
      ]}
    />
  )
}

/** Omits the query, which can be long and contain a secret. */
function titleOf(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}
