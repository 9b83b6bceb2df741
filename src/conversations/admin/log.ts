/** Lists and exports an owner's conversations. */
import type { ConversationDatabase } from '../../db/open.ts'
import { type Actor, recordAudit } from '../../identity/audit.ts'
import { ServiceError } from '../../lib/errors.ts'
import { toPage } from '../../lib/page.ts'
import { GeneratedFile } from '../../operations/operation.ts'
import { type OperationsDependencies, renderConversations, wrongAfter } from '../requests.ts'
import type { ConversationObject } from '../schema.ts'
import { findMatches, type SearchMatch } from '../search/matches.ts'
import { parseSearch } from '../search/query.ts'
import { type ConversationRow, findConversation } from '../store.ts'
import { exportTurns } from './export.ts'
import { type ConversationFilter, listAnyConversations } from './list.ts'
import { ConversationExportQuery, type ConversationList, type ConversationListQuery } from './schema.ts'

const JSON_LINES = 'application/jsonl'
const conversationId = /^conv_[0-9A-Za-z]{24}$/

/**
 * @throws ServiceError `invalid_value` if `after` is not the id of one of the tenant's conversations, or if
 * `q` is invalid
 */
export async function listConversations(
  deps: OperationsDependencies,
  tenantId: string,
  query: ConversationListQuery,
): Promise<ConversationList> {
  const filter = toFilter(tenantId, query)
  const opened = await deps.conversations.storage.find()
  const rows = opened === undefined ? [] : await readRows(opened, filter, query)
  const page = toPage(rows, query.limit)
  return {
    object: 'list',
    data: opened === undefined ? [] : await renderHits(opened, page.rows, filter),
    first_id: page.rows[0]?.id ?? null,
    last_id: page.rows.at(-1)?.id ?? null,
    has_more: page.hasMore,
  }
}

async function readRows(
  { read }: ConversationDatabase,
  filter: ConversationFilter & { readonly tenantId: string },
  { limit, after, order, sort }: ConversationListQuery,
): Promise<ConversationRow[]> {
  const last = after === undefined ? undefined : await findConversation(read, filter.tenantId, after)
  if (after !== undefined && last === undefined) throw wrongAfter()
  return listAnyConversations(read, filter, { limit: limit + 1, after: last, order, sort })
}

/** Checks and converts filters from outside the API. @throws ServiceError `invalid_value` */
export function readFilter(tenantId: string | undefined, filters: object): ConversationFilter {
  const parsed = ConversationExportQuery.safeParse(filters)
  if (parsed.success) return toFilter(tenantId, parsed.data)
  const [issue] = parsed.error.issues
  const name = String(issue?.path[0] ?? '')
  throw new ServiceError('invalid_value', `${name}: ${issue?.message}`, { param: name })
}

/** @throws ServiceError `invalid_value` if `q` is invalid */
function toFilter<Tenant extends string | undefined>(
  tenantId: Tenant,
  { agent, visitor, tag, min_tokens, q, ...rest }: ConversationExportQuery,
): ConversationFilter & { readonly tenantId: Tenant } {
  const isId = q !== undefined && conversationId.test(q)
  return {
    ...rest,
    tenantId,
    id: isId ? q : undefined,
    agentId: agent,
    visitorId: visitor,
    minTokens: min_tokens,
    tag: tag?.normalize('NFC'),
    search: q === undefined || isId ? undefined : parseSearch(q),
  }
}

async function renderHits(
  database: ConversationDatabase,
  rows: readonly ConversationRow[],
  { search }: ConversationFilter,
): Promise<(ConversationObject & { match?: SearchMatch })[]> {
  const rendered = await renderConversations(database, rows)
  if (search === undefined) return rendered
  const ids = rows.map(({ id }) => id)
  const matches = await findMatches(database.read, ids, search)
  return rendered.map((one) => {
    const match = matches.get(one.id)
    return match === undefined ? one : { ...one, match }
  })
}

/**
 * Exports the conversations that match the filters; records the export first. @throws ServiceError if `q` is
 * invalid
 */
export async function exportConversations(
  deps: OperationsDependencies,
  actor: Actor,
  tenantId: string,
  query: ConversationExportQuery,
): Promise<GeneratedFile> {
  const filter = toFilter(tenantId, query)
  const { q: _q, ...filters } = query
  await recordAudit(deps, actor, {
    action: 'conversation.export',
    target: { kind: 'key', id: tenantId },
    tenantId,
    // A search text can contain personal data.
    details: { ...filters, has_search: filter.search !== undefined },
  })
  const opened = await deps.conversations.storage.find()
  const pieces = renderLines(deps, opened, filter)
  return new GeneratedFile({ mediaType: JSON_LINES, filename: 'conversations.jsonl', pieces })
}

async function* renderLines(
  { conversations: { data } }: OperationsDependencies,
  database: ConversationDatabase | undefined,
  filter: ConversationFilter,
): AsyncGenerator<string, void, void> {
  if (database === undefined) return yield `${JSON.stringify({ object: 'export.end', turns: 0 })}\n`
  for await (const line of exportTurns({ database, data }, filter)) yield `${JSON.stringify(line)}\n`
}
