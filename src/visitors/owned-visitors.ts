/** Lists and exports visitors on behalf of their owner. */
import {
  countConversations,
  exportTurns,
  findVisitor,
  listVisitorRows,
  type OwnedVisitor,
} from '../conversations/operator.ts'
import type { ConversationDatabase } from '../db/open.ts'
import { type Actor, recordAudit } from '../identity/audit.ts'
import { ServiceError } from '../lib/errors.ts'
import { type PageQuery, readPage } from '../lib/page.ts'
import type { Dependencies } from './dependencies.ts'
import { renderVisitor, type Visitor } from './owner-schema.ts'

interface VisitorQuery extends PageQuery {
  readonly agent?: string | undefined
  readonly subject?: string | undefined
  readonly email?: string | undefined
  readonly q?: string | undefined
}

/** Lists a tenant's visitors, last seen first. @throws ServiceError */
export async function listOwnedVisitors(
  { conversations }: Dependencies,
  tenantId: string,
  query: VisitorQuery,
) {
  const opened = await conversations.storage.find()
  const { rows, hasMore } = await readPage(query, {
    find: async (id) => opened && findVisitor(opened.read, id, tenantId),
    list: async (limit, after) =>
      opened === undefined ? [] : listVisitorRows(opened.read, { ...query, tenantId }, { limit, after }),
  })
  return {
    object: 'list' as const,
    data: opened === undefined ? [] : await render(opened, rows),
    has_more: hasMore,
  }
}

/** @throws ServiceError `not_found` */
export async function getOwnedVisitor(deps: Dependencies, tenantId: string, id: string): Promise<Visitor> {
  const { opened, visitor } = await find(deps, tenantId, id)
  const [rendered] = await render(opened, [visitor])
  return rendered as Visitor
}

/**
 * Exports the visitor, the visitor's turns and items, and an `export.end` line, each as a line of JSON.
 * @throws ServiceError `not_found`
 */
export async function exportVisitor(
  deps: Dependencies,
  actor: Actor,
  tenantId: string,
  id: string,
): Promise<AsyncGenerator<string, void, void>> {
  const { opened, visitor } = await find(deps, tenantId, id)
  await recordAudit(deps, actor, {
    action: 'conversation.export',
    target: { kind: 'visitor', id },
    tenantId,
  })
  return exportLines({ database: opened, data: deps.conversations.data }, visitor)
}

export async function* exportLines(
  source: Parameters<typeof exportTurns>[0],
  visitor: OwnedVisitor,
): AsyncGenerator<string, void, void> {
  const [rendered] = await render(source.database, [visitor])
  yield `${JSON.stringify(rendered)}\n`
  const filter = { tenantId: visitor.tenant, visitorId: visitor.id }
  for await (const line of exportTurns(source, filter)) yield `${JSON.stringify(line)}\n`
}

async function find({ conversations }: Dependencies, tenantId: string, id: string) {
  const opened = await conversations.storage.find()
  const visitor = opened && (await findVisitor(opened.read, id, tenantId))
  if (opened !== undefined && visitor !== undefined) return { opened, visitor }
  throw new ServiceError('not_found', `Visitor with id '${id}' not found.`, { param: 'visitor_id' })
}

async function render({ read }: ConversationDatabase, rows: readonly OwnedVisitor[]): Promise<Visitor[]> {
  const counts = await countConversations(
    read,
    rows.map(({ id }) => id),
  )
  return rows.map((row) => renderVisitor(row, counts.get(row.id) ?? 0))
}
