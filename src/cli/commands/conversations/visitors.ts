/** The `visitors` commands find, export and erase the visitors of all tenants. */

import { readFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { loadSealer } from '../../../agents/sealed-keys.ts'
import { createForgetSpending } from '../../../budgets/subjects.ts'
import type { Config } from '../../../config/config.ts'
import { countConversations, findVisitor, listVisitorRows } from '../../../conversations/operator.ts'
import type { ConversationDatabase, ConversationStorage } from '../../../db/open.ts'
import { recordAudit } from '../../../identity/audit.ts'
import { StartupError } from '../../../lib/errors.ts'
import { createLog } from '../../../telemetry/log.ts'
import { Erasures } from '../../../visitors/erasures.ts'
import { exportLines } from '../../../visitors/owned-visitors.ts'
import { renderErasure, renderVisitor } from '../../../visitors/owner-schema.ts'
import { createWebhookDirectory } from '../../../webhooks/directory.ts'
import { commandActor, createDeps, toPublicId, withConversations, withDatabase } from '../../installation.ts'
import { print, printNotice, printResult, renderTable, renderTime } from '../../output.ts'
import { runInterruptible } from '../../signals.ts'

const LISTED = 50

interface FindOptions {
  /** The parent key, or its id; undefined for all keys. */
  readonly key?: string
  readonly json?: boolean
}

export function find(text: string, { key, json = false }: FindOptions): Promise<void> {
  return withVisitors(async ({ storage }) => {
    const opened = await storage.find()
    const tenantId = key === undefined ? undefined : toPublicId(key)
    const page = { limit: LISTED + 1, after: undefined }
    const rows = opened === undefined ? [] : await listVisitorRows(opened.read, { q: text, tenantId }, page)
    const listed = rows.slice(0, LISTED)
    const ids = listed.map(({ id }) => id)
    const counts = opened === undefined ? new Map() : await countConversations(opened.read, ids)
    const visitors = listed.map((row) => ({
      ...renderVisitor(row, counts.get(row.id) ?? 0),
      key_id: row.tenant,
    }))
    if (json) print(JSON.stringify(visitors))
    else {
      const cells = visitors.map((one) => [
        ...[one.id, one.key_id, one.kind, one.subject, one.email ?? '-', one.name ?? '-'],
        ...[String(one.conversations), renderTime(one.seen_at)],
      ])
      print(renderTable(['ID', 'KEY', 'KIND', 'SUBJECT', 'EMAIL', 'NAME', 'CONVERSATIONS', 'SEEN'], cells))
    }
    if (rows.length > LISTED) printNotice(`There are more visitors; the list ends after ${LISTED}.`)
  })
}

/** Prints a visitor and their turns as JSON Lines. */
export function exportOne(id: string): Promise<void> {
  return withVisitors(async ({ deps, storage, data }) => {
    const { opened, visitor } = await findOne(storage, id)
    await recordAudit(deps, commandActor(), {
      action: 'conversation.export',
      target: { kind: 'visitor', id },
      tenantId: visitor.tenant,
    })
    const lines = Readable.from(exportLines({ database: opened, data }, visitor), { highWaterMark: 1 })
    await runInterruptible((signal) => pipeline(lines, process.stdout, { end: false, signal }))
  })
}

interface EraseOptions {
  readonly receipts?: string
  readonly yes?: boolean
  readonly json?: boolean
}

/** Erases a visitor, or repeats the erasures in a file of receipts, and prints the receipts. */
export function erase(id: string | undefined, { receipts, yes, json = false }: EraseOptions): Promise<void> {
  return withVisitors(async (access) => {
    if ((id === undefined) === (receipts === undefined))
      throw new StartupError('Give either the id of a visitor or --receipts.')
    const ids = receipts === undefined ? [id as string] : await readReceipts(receipts)
    if (yes !== true)
      throw new StartupError(`This deletes all data for ${ids.length} visitors; add --yes to confirm.`)
    const erasures = createErasures(access)
    const database = access.config.databaseUrl === undefined ? 'sqlite' : 'postgres'
    for (const visitorId of ids) {
      const found = await findData(access.storage, visitorId)
      if (found === undefined && receipts === undefined) throw visitorNotFound(visitorId)
      if (found === undefined) {
        printNotice(`${visitorId} has no data.`)
        continue
      }
      const receipt = renderErasure(await erasures.erase(commandActor(), found), database)
      if (receipt.status !== 'done')
        throw new StartupError(
          `The erasure ${receipt.id} could not be finished; a running server continues it.`,
        )
      const { conversations, turns } = receipt.counts
      printResult(json, receipt, `erased ${visitorId}: ${conversations} conversations, ${turns} turns`)
    }
  })
}

/** Reads the visitor ids from a file of receipts, which contains JSON Lines or a JSON array. */
async function readReceipts(path: string): Promise<string[]> {
  const text = await readFile(path, 'utf8')
  try {
    const parsed: unknown[] = text.trimStart().startsWith('[')
      ? JSON.parse(text)
      : text
          .split('\n')
          .filter((line) => line.trim() !== '')
          .map((line) => JSON.parse(line))
    const ids = parsed.map((receipt) => (receipt as { visitor_id?: unknown } | null)?.visitor_id)
    if (ids.every((visitorId) => typeof visitorId === 'string')) return [...new Set(ids)]
  } catch {
    // Reported below.
  }
  throw new StartupError(`${path} must contain erasure receipts, as JSON Lines or a JSON array.`)
}

/**
 * Finds a visitor's tenant and agent from the visitor's row or, if it is missing, from one of the visitor's
 * conversations.
 */
async function findData(storage: ConversationStorage, visitorId: string) {
  const opened = await storage.find()
  if (opened === undefined) return undefined
  const visitor = await findVisitor(opened.read, visitorId)
  if (visitor !== undefined) {
    const agentId = visitor.kind === 'anonymous' ? visitor.issuer : ''
    return { tenant: visitor.tenant, visitor_id: visitorId, agent_id: agentId }
  }
  const conversation = await opened.read
    .selectFrom('conversations')
    .select(['tenant', 'agent_id'])
    .where('visitor_id', '=', visitorId)
    .limit(1)
    .executeTakeFirst()
  return conversation && { ...conversation, visitor_id: visitorId }
}

async function findOne(storage: ConversationStorage, id: string) {
  const opened: ConversationDatabase | undefined = await storage.find()
  const visitor = opened && (await findVisitor(opened.read, id))
  if (opened !== undefined && visitor !== undefined) return { opened, visitor }
  throw visitorNotFound(id)
}

function visitorNotFound(id: string): StartupError {
  return new StartupError(`There is no visitor ${id}; \`parley visitors find <text>\` shows the ids.`)
}

interface Access {
  readonly deps: ReturnType<typeof createDeps>
  readonly config: Config
  readonly storage: ConversationStorage
  readonly data: Parameters<Parameters<typeof withConversations>[1]>[1]
  readonly deleteUploads: Parameters<Parameters<typeof withConversations>[1]>[2]
}

function createErasures({ deps, config, storage, data, deleteUploads }: Access): Erasures {
  const directory = createWebhookDirectory({ ...deps, storage, config, onPrepared() {} })
  return new Erasures({
    ...deps,
    storage,
    log: createLog(config),
    webhooks: { find: directory.find, wake() {} },
    dropDeleted: () => data.dropDeleted(),
    deleteUploadsOf: deleteUploads,
    forgetSpending: createForgetSpending(deps.db, () => loadSealer(config, deps)),
  })
}

function withVisitors(run: (access: Access) => Promise<void>): Promise<void> {
  return withDatabase((db, config, clock) =>
    withConversations({ db, config }, (storage, data, deleteUploads) =>
      run({ deps: createDeps(db, clock), config, storage, data, deleteUploads }),
    ),
  )
}
