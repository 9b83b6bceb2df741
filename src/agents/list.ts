/** Lists the agents of a tenant and the versions of an agent in pages that are bounded in number and in size. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { listVersionAuthors } from '../identity/audit.ts'
import { ServiceError } from '../lib/errors.ts'
import { getRow, toVersion } from './agents.ts'
import type { Agent, AgentDirectory } from './cache.ts'
import type { Dependencies } from './dependencies.ts'
import {
  type AgentRow,
  type AgentVersionRow,
  findAgent,
  listAgentRows,
  type Place,
  selectVersions,
} from './store.ts'

/** A page ends before the characters of its definitions exceed this, but contains at least one item. */
const MAX_PAGE_LENGTH = 2 * 1024 * 1024
const MAX_PAGE_ITEMS = 1_000
/** Parsing a definition of this length may take some milliseconds. */
const LONG_TEXT = 16 * 1024
/** Rows that are read at once. */
const BATCH = 20

type ListDeps = Pick<Dependencies, 'db'> & { readonly agents: AgentDirectory }

/** Returns the newest agents first if no field is set. */
export interface ListRequest {
  readonly limit?: number | undefined
  readonly after?: string | undefined
  readonly before?: string | undefined
  readonly order?: 'asc' | 'desc' | undefined
}

export interface AgentPage {
  readonly agents: readonly Agent[]
  /** Undefined when the request asked for all agents and the page contains them. */
  readonly hasMore: boolean | undefined
}

/**
 * Lists agents in the requested order. @throws ServiceError `invalid_value` if `after` or `before` is not
 * one of them.
 */
export async function listAgents(deps: ListDeps, tenantId: string, request: ListRequest): Promise<AgentPage> {
  const { limit, order = 'desc' } = request
  const after = await findPlace(deps, tenantId, 'after', request.after)
  const before = await findPlace(deps, tenantId, 'before', request.before)
  const isBackwards = before !== undefined && after === undefined
  const [olderThan, newerThan] = order === 'desc' ? [after, before] : [before, after]
  const first = (order === 'desc') !== isBackwards ? 'newest' : 'oldest'
  const { items, hasMore } = await readPage<AgentRow>(limit, (count, last) => {
    const bounds =
      first === 'newest'
        ? { olderThan: last ?? olderThan, newerThan }
        : { olderThan, newerThan: last ?? newerThan }
    return listAgentRows(deps.db, tenantId, { first, ...bounds, limit: count })
  })
  const agents: Agent[] = []
  for (const row of isBackwards ? items.reverse() : items) {
    agents.push(deps.agents.prepare(row))
    if (row.source.length > LONG_TEXT) await nextTurn()
  }
  const isPaged = Object.values(request).some((value) => value !== undefined)
  return { agents, hasMore: isPaged || hasMore ? hasMore : undefined }
}

/** Lists all agents; for commands, which block no other request. */
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

/** `author` is null for versions that were written before authors were recorded. */
interface AuthoredVersion extends AgentVersionRow {
  readonly author: string | null
}

export interface VersionPage {
  /** Newest first. */
  readonly versions: readonly AuthoredVersion[]
  /** The number of the version in force. */
  readonly current: number
  /** Undefined when the request asked for all versions and the page contains them. */
  readonly hasMore: boolean | undefined
}

/** Lists versions of an agent before `before`, or all of them, newest first. @throws ServiceError `not_found` */
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

  // Selects only versions before the row, because a concurrent write may have added a later one.
  function readEarlier(version: number, count: number): Promise<AgentVersionRow[]> {
    const earlier = selectVersions(deps.db, tenantId, id).where('version', '<', version)
    return earlier.orderBy('version', 'desc').limit(count).execute()
  }
}

/** Reads batches until the page is full, and lets other requests run between them. */
async function readPage<Row extends { readonly source: string }>(
  limit: number | undefined,
  read: (count: number, last: Row | undefined) => Promise<readonly Row[]>,
): Promise<{ items: Row[]; hasMore: boolean }> {
  const maxItems = limit ?? MAX_PAGE_ITEMS
  const items: Row[] = []
  let length = 0
  while (true) {
    // One row more than fits shows whether there is another page.
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

async function findPlace(
  deps: Pick<Dependencies, 'db'>,
  tenantId: string,
  param: 'after' | 'before',
  id: string | undefined,
): Promise<Place | undefined> {
  if (id === undefined) return undefined
  const row = await findAgent(deps.db, tenantId, id)
  if (row === undefined)
    throw new ServiceError('invalid_value', `${param}: must be the id of an agent of this key`, { param })
  return row
}
