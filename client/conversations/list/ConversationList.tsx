/** Lists the conversations that match the filters, page after page. */
import { Anchor, Button, Checkbox, Code, Text } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useRef, useState } from 'react'
import { LoadMore } from '../../components/LoadMore.tsx'
import { BulkBar } from '../../components/list/ListToolbar.tsx'
import { useSelection } from '../../components/list/list-state.ts'
import { Empty, Failed, Loading } from '../../components/QueryStates.tsx'
import type { ConversationsSearch } from '../../search.ts'
import { useMe } from '../../shell/use-me.ts'
import { t } from '../../strings/language.ts'
import { rich } from '../../strings/rich.tsx'
import { DeleteDialog } from '../DeleteDialog.tsx'
import { type Conversation, conversationListQuery, titleOf } from '../queries.ts'
import { ConversationRow } from './ConversationRow.tsx'
import { filtersOf } from './filters.ts'

interface ConversationListProps {
  readonly search: ConversationsSearch
  /** Id of the open conversation. */
  readonly openId: string | undefined
  readonly onClear: () => void
}

export function ConversationList({ search, openId, onClear }: ConversationListProps) {
  const filters = filtersOf(search)
  const query = useInfiniteQuery(conversationListQuery(filters))
  const selection = useSelection(JSON.stringify(filters))
  const [deleted, setDeleted] = useState<readonly Conversation[]>([])
  const scroller = useRef<HTMLDivElement>(null)
  const { data, error, refetch } = query
  const rows = data?.pages.flatMap((page) => page.data)
  const agentIds = rows?.flatMap(({ parley }) => parley?.agent_id ?? []) ?? []
  const selected = rows?.filter(({ id }) => selection.ids.has(id)) ?? []
  return (
    <div className="desk-rows" ref={scroller}>
      {selected.length === 0 ? null : (
        <BulkBar
          rows={selected}
          actions={[{ label: t('conversations.deleteMenu'), isDangerous: true, run: keep(setDeleted) }]}
          onClear={selection.clear}
        />
      )}
      {rows === undefined && error === null ? <Loading what="conversations" rows={8} height={64} /> : null}
      {rows === undefined && error !== null ? (
        <Failed error={error} what="conversations" retry={() => void refetch()} />
      ) : null}
      {rows?.length === 0 ? <NoConversations filters={filters} onClear={onClear} /> : null}
      {rows === undefined || rows.length === 0 ? null : (
        <ul aria-label={t('conversations.title')} data-selecting={selected.length > 0 || undefined}>
          {rows.map((row) => (
            <ConversationRow
              key={row.id}
              conversation={row}
              search={search}
              agentIds={agentIds}
              isOpen={row.id === openId}
            >
              <Checkbox
                size="xs"
                className="desk-check"
                aria-label={t('common.selectRow', { name: titleOf(row) })}
                checked={selection.ids.has(row.id)}
                onChange={({ currentTarget }) => selection.set([row.id], currentTarget.checked)}
              />
            </ConversationRow>
          ))}
        </ul>
      )}
      <LoadMore query={query} root={scroller} failed={t('conversations.moreFailed')} />
      <DeleteDialog
        ids={deleted.map(({ id }) => id)}
        onClose={() => setDeleted([])}
        onDeleted={selection.clear}
      />
    </div>
  )
}

/** Keeps the selection until the user has confirmed. */
function keep<T>(run: (rows: readonly T[]) => void): (rows: readonly T[]) => undefined {
  return (rows) => {
    run(rows)
    return undefined
  }
}

interface NoConversationsProps {
  readonly filters: ConversationsSearch
  readonly onClear: () => void
}

function NoConversations({ filters, onClear }: NoConversationsProps) {
  const { is_allowed: isAllowed } = useMe().conversations
  const { agent, ...others } = filters
  if (!isAllowed)
    return (
      <Empty icon="conversations" title={t('conversations.forbiddenTitle')}>
        {rich('conversations.forbidden', { setting: <Code>PARLEY_CONVERSATIONS=forbidden</Code> })}
      </Empty>
    )
  if (Object.keys(others).length > 0) return <NoMatches filters={others} onClear={onClear} />
  return (
    <Empty
      icon="conversations"
      title={agent === undefined ? t('conversations.none') : t('conversations.noneOfAgent')}
      action={<NextStep agent={agent} />}
    >
      {rich('conversations.noneHelp', {
        field: (
          <Text span fw={500} c="var(--text)">
            {t('conversations.storeConversations')}
          </Text>
        ),
        code: (
          <Code>
            conversations: {'{'} keep: 30d {'}'}
          </Code>
        ),
      })}
    </Empty>
  )
}

function NextStep({ agent }: { readonly agent: string | undefined }): ReactNode {
  if (agent === undefined)
    return (
      <Button component={Link} to="/agents" variant="default">
        {t('conversations.chooseAgent')}
      </Button>
    )
  return (
    <Anchor component={Link} to="/agents/$agentId" params={{ agentId: agent } as never} size="sm">
      {t('conversations.editAgent')}
    </Anchor>
  )
}

function NoMatches({ filters, onClear }: NoConversationsProps) {
  const isWaiting = filters.mode === 'waiting' && Object.keys(filters).length === 1
  if (isWaiting)
    return (
      <Empty icon="check" title={t('conversations.noneWaiting')}>
        {t('conversations.noneWaitingHelp')}
      </Empty>
    )
  return (
    <Empty
      icon="search"
      title={t('common.noMatching', { thing: t('things.conversations') })}
      action={
        <Button variant="default" onClick={onClear}>
          {t('common.clearFilters')}
        </Button>
      }
    >
      {t('common.changeSearch')}
    </Empty>
  )
}
