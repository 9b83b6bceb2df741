/** Tests that the conversation store closes within a limited time even while it cannot write. */
import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import pino from 'pino'
import { Registry } from 'prom-client'
import { expect, onTestFinished, test } from 'vitest'
import { Conversations, type TurnPlan } from '../../../src/conversations/conversations.ts'
import type { Database } from '../../../src/db/database.ts'
import { createConversationStorage } from '../../../src/db/open.ts'
import { createPositions, systemClock } from '../../../src/lib/clock.ts'
import { localBus } from '../../../src/replicas/bus.ts'
import { ConversationMetrics } from '../../../src/telemetry/conversation-metrics.ts'
import { makeFolder } from '../../support/process.ts'

const MIB = 1024 * 1024

const plan: TurnPlan = {
  tenantId: 'tenant_a',
  agentId: '',
  agentVersion: undefined,
  keepSeconds: 3_600,
  conversationId: undefined,
  previous: undefined,
  responseId: undefined,
  idempotency: undefined,
  isStream: true,
  isBackground: true,
  onDisconnect: 'continue',
  toolData: 'full',
  kind: 'model',
  request: {},
  input: [],
  inputField: { name: 'messages', first: 0 },
  requestId: 'req_a',
  renderFailure: () => Buffer.from('data: {}\n\n'),
}

test('the conversation store closes even if another process locks the database before 1 MiB of a turn is stored', async () => {
  const folder = await makeFolder()
  const warnings: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void warnings.push(JSON.parse(line).msg) })
  const conversations = new Conversations({
    config: {
      conversations: {
        isAllowed: true,
        maxDays: 30,
        withoutAgent: 'default',
        withoutAgentDays: 30,
        followers: { parent: 10, agent: 10, address: 10 },
        flushMs: 1,
        reconnectMs: 1_000,
        replaySeconds: 3_600,
        maxBytes: 0,
      },
    },
    forgetSpending: async () => {},
    storage: createConversationStorage(
      { db: undefined as unknown as Database, databaseUrl: undefined },
      folder,
    ),
    openBlobs: () => Promise.reject(new Error('no blobs')),
    deleteUploads: async () => {},
    clock: systemClock,
    random: randomBytes,
    log,
    bus: localBus,
    metrics: new ConversationMetrics(new Registry()),
    capabilityKey: randomBytes(32),
    nextPosition: createPositions(systemClock),
    isOnlyServer: true,
    findHandoverRules: async () => undefined,
    closeMs: 50,
  })
  const other = new Sqlite(join(folder, 'conversations.db'), { fileMustExist: false })
  onTestFinished(async () => {
    other.close()
    await rm(folder, { recursive: true, force: true })
  })
  const accepted = Promise.withResolvers<void>()
  await conversations.start(plan, async function* (signal) {
    await accepted.promise
    yield Buffer.from(`data: ${'x'.repeat(2 * MIB)}\n\n`)
    signal.throwIfAborted()
    yield Buffer.from('data: late\n\n')
  })
  other.exec('begin immediate')
  accepted.resolve()
  // The turn has produced its event when all promises have settled.
  await new Promise((resolve) => setImmediate(resolve))
  await conversations.close()
  other.exec('rollback')
  expect(warnings).toContain('the conversation store did not shut down in time')
})
