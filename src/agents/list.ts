/** Lists a tenant's agents, and an agent's versions, in pages of limited size. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { listVersionAuthors } from '../identity/audit.ts'
import { readLastDays } from '../usage/usage.ts'
import { getRow, toVersion } from './agents.ts'
import type { Agent, AgentDirectory } from './cache.ts'
import type { Dependencies } from './dependencies.ts'
import {
  type AgentRow,
  type AgentSort,
  type AgentVersionRow,
  findAgentPlace,
  listAgentRows,
  selectVersions,
} from './store.ts'

/**
 * Limit on the total length of the definitions on a page, in UTF-16 code units. A page always has at least
 * one item.
 */
const MAX_PAGE_LENGTH = 2 * 1024 * 1024
const MAX_PAGE_ITEMS = 1_000
/**
 * Definition length in UTF-16 code units above which the list yields to other requests, because parsing the
 * definition takes milliseconds.
 */
const LONG_TEXT = 16 * 1024
const BATCH = 20

type ListDeps = Pick<Dependencies, 'db'> & { readonly agents: AgentDirectory }

/** `order` defaults to `desc`, and `sort` to `created`, which lists the newest agents first. */
interface ListRequest {
  readonly limit?: number | undefined
  readonly after?: string | undefined
  readonly before?: string | undefined
  readonly order?: 'asc' | 'desc' | undefined
  readonly sort?: AgentSort | undefined
  readonly q?: string | undefined
}

export interface AgentPage {
  readonly agents: readonly Agent[]
  /** Undefined if the request has no parameters except `include`, and the page contains all agents. */
  readonly hasMore: boolean | undefined
  /** The last day (UTC) with a call, keyed by agent id; present only with `include: 'last_used_on'`. */
  readonly lastDays?: ReadonlyMap<string, string> | undefined
}

/**
 * Returns a page of agents with the fields that `include` names.
 * @throws ServiceError `invalid_value` if `after` or `before` is not the id of one of the tenant's agents.
 */
export async function listAgentsWith(
  deps: ListDeps & Pick<Dependencies, 'usage'>,
  tenantId: string,
  { include, ...request }: ListRequest & { readonly include?: 'last_used_on' | undefined },
): Promise<AgentPage> {
  const page = await listAgents(deps, tenantId, request)
  if (include === undefined) return page
  const ids = page.agents.map(({ row }) => row.id)
  return { ...page, lastDays: await readLastDays(deps, tenantId, ids) }
}

/**
 * Returns a page of agents.
 * @throws ServiceError `invalid_value` if `after` or `before` is not the id of one of the tenant's agents.
 */
export async function listAgents(deps: ListDeps, tenantId: string, request: ListRequest): Promise<AgentPage> {
  const { limit, order = 'desc', sort: by = 'created', q } = request
  const find = (param: 'after' | 'before', id = request[param]) =>
    findAgentPlace(deps.db, tenantId, by, id, param)
  const after = await find('after')
  const before = await find('before')
  const isBackwards = before !== undefined && after === undefined
  const [below, above] = order === 'desc' ? [after, before] : [before, after]
  const first = (order === 'desc') !== isBackwards ? 'desc' : 'asc'
  const { items, hasMore } = await readPage<AgentRow>(limit, async (count, last) => {
    const place = last && (await find('after', last.id))
    const bounds = first === 'desc' ? { below: place ?? below, above } : { below, above: place ?? above }
    return listAgentRows(deps.db, tenantId, { by, order: first, ...bounds, q, limit: count })
  })
  const agents: Agent[] = []
  for (const row of isBackwards ? items.reverse() : items) {
    agents.push(deps.agents.prepare(row))
    if (row.source.length > LONG_TEXT) await nextTurn()
  }
  const isPaged = Object.values(request).some((value) => value !== undefined)
  return { agents, hasMore: isPaged || hasMore ? hasMore : undefined }
}

/** Lists all of a tenant's agents. For CLI commands only, because the result has no size limit. */
export async function listAllAgents(
  deps: ListDeps,
  tenantId: string,
  order: 'asc' | 'desc' = 'desc',
): Promise<readonly Agent[]> {
  const all: Agent[] = []
  let hasMore = true
  while (hasMore) {
    const page = await listAgents(deps, tenantId, { order, after: all.at(-1)?.row.id })
    all.push(...page.agents)
    hasMore = page.hasMore === true
  }
  return all
}

/** `author` is null for versions created before Parley recorded authors. */
interface AuthoredVersion extends AgentVersionRow {
  readonly author: string | null
}

export interface VersionPage {
  /** Newest first. */
  readonly versions: readonly AuthoredVersion[]
  /** The agent's current version number. */
  readonly current: number
  /** Undefined if the request has no `before` and the page contains all versions. */
  readonly hasMore: boolean | undefined
}

/**
 * Lists an agent's versions, newest first; with `before`, only versions older than that number.
 * @throws ServiceError `not_found`
 */
export async function listVersions(
  deps: Pick<Dependencies, 'db'>,
  tenantId: string,
  id: string,
  before?: number,
): Promise<VersionPage> {
  const row = await getRow(deps, tenantId, id)
  const isFirst = before === undefined || before > row.version
  const { items, hasMore } = await readPage<AgentVersionRow>(undefined, async (count, last) => {
    if (last === undefined && isFirst) return [toVersion(row), ...(await readEarlier(row.version, count - 1))]
    return readEarlier(last?.version ?? Number(before), count)
  })
  const authors = await listVersionAuthors(deps, id)
  return {
    versions: items.map((version) => ({ ...version, author: authors.get(version.version) ?? null })),
    current: row.version,
    hasMore: before !== undefined || hasMore ? hasMore : undefined,
  }

  // Excludes versions that a concurrent write added after `row` was read.
  function readEarlier(version: number, count: number): Promise<AgentVersionRow[]> {
    const earlier = selectVersions(deps.db, tenantId, id).where('version', '<', version)
    return earlier.orderBy('version', 'desc').limit(count).execute()
  }
}

/** Reads rows in batches until the page is full. Other requests can run between batches. */
async function readPage<Row extends { readonly source: string }>(
  limit: number | undefined,
  read: (count: number, last: Row | undefined) => Promise<readonly Row[]>,
): Promise<{ items: Row[]; hasMore: boolean }> {
  const maxItems = limit ?? MAX_PAGE_ITEMS
  const items: Row[] = []
  let length = 0
  while (true) {
    // Requests one extra row to detect whether there is another page.
    const count = Math.min(BATCH, maxItems + 1 - items.length)
    const rows = await read(count, items.at(-1))
    for (const row of rows) {
      length += row.source.length
      if (items.length === maxItems || (items.length > 0 && length > MAX_PAGE_LENGTH))
        return { items, hasMore: true }
      items.push(row)
    }
    if (rows.length < count) return { items, hasMore: false }
    await nextTurn()
  }
}
