/** Lists individual calls with their outcome, attempts and failures. */

import { Badge, Menu, Text } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { agentNamesQuery } from '../agents/queries.ts'
import { api, type Outputs } from '../api.ts'
import type { Column } from '../components/DataTable.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Ago, TextLink } from '../components/text.tsx'
import { renderMilliseconds, renderNumber, renderUsd } from '../format.ts'
import { changeSearch, type UsageSearch } from '../search.ts'
import { showDone } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'
import { keyNamesQuery } from './key-names.ts'
import { nameOutcome } from './outcomes.ts'
import { daysOf, selectsAll, toAgentFilter } from './use-usage.ts'

type Call = Outputs['usage']['calls']['data'][number]

const PAGE_SIZE = 50

interface CallListProps {
  readonly search: UsageSearch
  readonly onSearch: (search: UsageSearch) => void
}

export function CallList({ search, onSearch }: CallListProps) {
  const { key, model, status, after, request } = search
  const isAll = selectsAll(search)
  const days = request === undefined ? daysOf(search) : {}
  const agent = toAgentFilter(search.agent)
  const wanted = { ...days, agent, model, status, request_id: request, after }
  const query = useQuery({
    queryKey: ['usage', 'calls', isAll, key, wanted],
    queryFn: () =>
      isAll
        ? api.admin.usageCalls.query({ ...wanted, limit: PAGE_SIZE, key })
        : api.usage.calls.query({ ...wanted, limit: PAGE_SIZE }),
    placeholderData: keepPreviousData,
  })
  const { data: names } = useQuery(
    agentNamesQuery(query.data?.data.flatMap(({ agent }) => agent ?? []) ?? []),
  )
  const { data: keyNames = new Map<string, string>() } = useQuery({ ...keyNamesQuery, enabled: isAll })
  return (
    <ListView
      label={t('usage.calls')}
      items="calls"
      columns={columnsOf(names, isAll ? keyNames : undefined)}
      query={query}
      idOf={({ id }) => id}
      nameOf={({ request_id: id }) => id}
      search={{ q: request, after, ...{ status } }}
      onSearch={({ q, ...changes }) => onSearch(changeSearch(search, { ...changes, request: q }))}
      placeholder={t('usage.requestId')}
      menu={(call) => (
        <CallMenuItems call={call} isOwn={call.agent !== null && names?.has(call.agent) === true} />
      )}
      sorting={{ sort: 'created', order: 'desc' }}
      onPhone="scroll"
      empty={
        <Empty icon="usage" title={t('usage.noCalls')}>
          {t('usage.noCallsHelp')}
        </Empty>
      }
    />
  )
}

/** Returns the address from which the browser downloads the selected calls. */
export function exportAddress(search: UsageSearch): string {
  const { key, model, status, request } = search
  const isAll = selectsAll(search)
  const agent = toAgentFilter(search.agent)
  const days = request === undefined ? daysOf(search) : {}
  const wanted = { ...days, agent, model, status, request_id: request, key: isAll ? key : undefined }
  const pairs = Object.entries(wanted).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return `/v1/manager/${isAll ? 'admin/' : ''}usage/calls.csv?${new URLSearchParams(pairs)}`
}

/** `keyNames` is undefined for the calls of one key. */
function columnsOf(
  names: ReadonlyMap<string, string> | undefined,
  keyNames: ReadonlyMap<string, string> | undefined,
): readonly Column<Call>[] {
  const columns: Column<Call>[] = [
    { name: 'usage.time', isMain: true, render: ({ created_at: at }) => <Ago seconds={at} /> },
    {
      name: 'usage.agent',
      render: ({ agent }) =>
        agent === null ? t('conversations.noAgent') : <AgentLink id={agent} name={names?.get(agent)} />,
    },
    {
      name: 'usage.model',
      render: ({ model, provider }) => (model === provider ? model : `${model} (${provider})`),
    },
    { name: 'usage.outcome', render: ({ status }) => <Outcome status={status} /> },
    { name: 'usage.tokens', isNumber: true, render: renderTokens },
    { name: 'usage.cost', isNumber: true, render: (call) => <Cost call={call} /> },
    { name: 'usage.latency', isNumber: true, render: ({ latency_ms: time }) => renderMilliseconds(time) },
    {
      name: 'usage.firstTokenShort',
      isNumber: true,
      render: ({ first_byte_ms: time }) => (time === null ? '–' : renderMilliseconds(time)),
    },
    { name: 'usage.attempts', render: (call) => <Attempts call={call} /> },
    {
      name: 'usage.key',
      isHidden: keyNames === undefined,
      render: ({ key }) => {
        const name = keyNames?.get(key)
        return name === undefined ? <code>{key}</code> : <bdi title={key}>{name}</bdi>
      },
    },
    { name: 'usage.requestId', isHidden: true, render: ({ request_id: id }) => <code>{id}</code> },
  ]
  return columns
}

/** Links to an agent of the active key; shows the id of any other agent. */
function AgentLink({ id, name }: { readonly id: string; readonly name: string | undefined }) {
  if (name === undefined) return <bdi>{id}</bdi>
  return (
    <TextLink to="/agents/$agentId" params={{ agentId: id }} inherit>
      <bdi>{name}</bdi>
    </TextLink>
  )
}

interface CallMenuItemsProps {
  readonly call: Call
  /** Whether the call's agent belongs to the active key. */
  readonly isOwn: boolean
}

function CallMenuItems({ call: { request_id: id, agent }, isOwn }: CallMenuItemsProps) {
  return (
    <>
      <Menu.Item onClick={() => void copyRequestId(id)}>{t('usage.copyRequestId')}</Menu.Item>
      {isOwn && agent !== null ? (
        <>
          <Menu.Item
            renderRoot={(props) => <Link to="/agents/$agentId" params={{ agentId: agent }} {...props} />}
          >
            {t('usage.openAgent')}
          </Menu.Item>
          <Menu.Item renderRoot={(props) => <Link to="/conversations" search={{ agent }} {...props} />}>
            {t('agents.viewConversations')}
          </Menu.Item>
        </>
      ) : null}
    </>
  )
}

async function copyRequestId(id: string): Promise<void> {
  await navigator.clipboard.writeText(id)
  showDone(t('usage.requestIdCopied'))
}

function renderTokens({ total_tokens: tokens, estimated }: Call): string {
  return estimated ? t('usage.estimated', { number: tokens }) : renderNumber(tokens)
}

/** Shows the cost; marks calls whose tokens are estimated, and calls of models without a price. */
function Cost({ call }: { readonly call: Call }) {
  const { cost, estimated, rounds, total_tokens: tokens } = call
  if (cost !== null) {
    const amount = renderUsd(Number(cost))
    return estimated ? (
      <span title={t('usage.estimatedHelp')}>{t('usage.estimated', { number: amount })}</span>
    ) : (
      amount
    )
  }
  // Calls of earlier versions have no rounds and no cost.
  if (rounds === null || tokens === 0) return '–'
  return (
    <Badge size="sm" variant="default" title={t('usage.unpricedHelp')}>
      {t('usage.unpriced')}
    </Badge>
  )
}

function Outcome({ status }: Pick<Call, 'status'>) {
  const label = nameOutcome(status)
  const isFailure = status !== 'ok' && status !== 'left'
  return isFailure ? <span className="danger-text">{label}</span> : label
}

/** Shows the number of requests to providers, and the reason of each that failed. */
function Attempts({ call: { attempts, failed_attempts: failed } }: { readonly call: Call }) {
  if (attempts === null) return '–'
  return (
    <>
      {renderNumber(attempts)}
      {failed.map(({ provider, model, reason }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: equal failures have no other identity
        <Text key={index} size="xs" c="dimmed">
          {`${model} (${provider}): ${reason}`}
        </Text>
      ))}
    </>
  )
}
