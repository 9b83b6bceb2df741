/** Shows the facts about a conversation, and exports or deletes it. */
import { Anchor, Button, Code, Group } from '@mantine/core'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { Ago } from '../../components/text.tsx'
import { renderNumber } from '../../format.ts'
import { Icon } from '../../shell/icons.tsx'
import { t } from '../../strings/language.ts'
import { AgentName } from '../AgentName.tsx'
import { DeleteDialog } from '../DeleteDialog.tsx'
import { nameChoice } from '../list/FilterForm.tsx'
import { exportAddress, filtersOf } from '../list/filters.ts'
import type { Conversation } from '../queries.ts'
import { Fact, FactList } from './FactList.tsx'

export function Facts({ conversation }: { readonly conversation: Conversation }) {
  const { id, created_at: createdAt, metadata, parley } = conversation
  if (parley === undefined) return null
  const pairs = Object.entries(metadata)
  return (
    <section className="side-section" aria-label={t('conversations.facts')}>
      <h2>{t('conversations.facts')}</h2>
      <FactList>
        <Fact name={t('common.agent')}>
          <AgentLink id={parley.agent_id} />
        </Fact>
        <Fact name={t('conversations.visitor')}>
          <VisitorLink conversation={conversation} />
        </Fact>
        <Fact name={t('conversations.channel')}>{nameChoice('channel', parley.channel)}</Fact>
        <Fact name={t('conversations.turns')}>{renderNumber(parley.turns)}</Fact>
        {parley.failures === 0 ? null : (
          <Fact name={t('conversations.failedTurns')}>{renderNumber(parley.failures)}</Fact>
        )}
        <Fact name={t('conversations.tokens')}>
          {t('conversations.tokensInOut', { input: parley.prompt_tokens, output: parley.completion_tokens })}
        </Fact>
        <Fact name={t('conversations.started')}>
          <Ago seconds={createdAt} />
        </Fact>
        <Fact name={t('conversations.lastActivity')}>
          <Ago seconds={parley.last_at} />
        </Fact>
        <Fact name={t('conversations.expires')}>
          <Ago seconds={parley.expires_at} />
        </Fact>
        <Fact name={t('conversations.id')} isWide>
          <Code>{id}</Code>
        </Fact>
      </FactList>
      {pairs.length === 0 ? null : (
        <>
          <h2>{t('conversations.metadata')}</h2>
          <FactList>
            {pairs.map(([name, value]) => (
              <Fact key={name} name={name}>
                {value}
              </Fact>
            ))}
          </FactList>
        </>
      )}
      <Actions id={id} />
    </section>
  )
}

function AgentLink({ id }: { readonly id: string | null }) {
  if (id === null) return <AgentName id={null} />
  return (
    <Anchor component={Link} to="/agents/$agentId" params={{ agentId: id } as never} size="sm">
      <AgentName id={id} />
    </Anchor>
  )
}

function VisitorLink({ conversation: { parley } }: { readonly conversation: Conversation }) {
  const visitor = parley?.visitor
  if (visitor == null) return '–'
  const name = visitor.name ?? (visitor.kind === 'anonymous' ? t('conversations.anonymous') : visitor.subject)
  return (
    <Anchor component={Link} to="/visitors/$visitorId" params={{ visitorId: visitor.id } as never} size="sm">
      <bdi>{name}</bdi>
    </Anchor>
  )
}

function Actions({ id }: { readonly id: string }) {
  const navigate = useNavigate()
  const search = useSearch({ from: '/shell/conversations' })
  const [isDeleting, setIsDeleting] = useState(false)
  return (
    <Group gap="xs" mt="md">
      <Button
        component="a"
        href={exportAddress({ q: id })}
        download={`${id}.jsonl`}
        variant="default"
        size="xs"
        leftSection={<Icon name="download" size={14} />}
      >
        {t('conversations.export')}
      </Button>
      <Button variant="default" size="xs" c="var(--bad)" onClick={() => setIsDeleting(true)}>
        {t('conversations.deleteMenu')}
      </Button>
      <DeleteDialog
        ids={isDeleting ? [id] : []}
        onClose={() => setIsDeleting(false)}
        onDeleted={() => navigate({ to: '/conversations', search: filtersOf(search) })}
      />
    </Group>
  )
}
