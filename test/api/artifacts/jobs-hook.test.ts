/** Tests that the host's onUploadComplete handler is called for each upload until it succeeds. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import type { CompletedUpload, OnUploadComplete, UploadHooks } from '../../../src/server/service.ts'
import { startApp } from '../../support/app.ts'
import { failOnChange } from '../../support/database.ts'
import { createManualClock, getRow, listJobs, startJobs, waitUntil } from '../../support/jobs.ts'
import { createLineLog } from '../../support/log-lines.ts'
import {
  createUpload,
  listArtifactBytes,
  readStatus,
  uploadWhole,
  waitForState,
} from '../../support/uploads.ts'

// Conversions may take longer than the default timeout on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const SRT = Buffer.from('1\n00:00:01,000 --> 00:00:02,000\nHi\n')
const captions = { size: SRT.length, body: SRT, metadata: { kind: 'captions' } }

interface Call {
  readonly artifact: CompletedUpload
  readonly hooks: UploadHooks
  /** Makes the handler return. */
  end(): void
  /** Makes the handler throw. */
  fail(): void
}

/** Creates a handler; the test decides when each of its calls ends. */
function createHost() {
  const calls: Call[] = []
  const onUploadComplete: OnUploadComplete = (artifact, hooks) =>
    new Promise<void>((resolve, reject) => {
      calls.push({ artifact, hooks, end: resolve, fail: () => reject(new Error('not today')) })
    })
  const call = async (number: number): Promise<Call> => {
    await waitUntil(async () => calls.length > number, `it is called ${number + 1} times`)
    return calls[number] as Call
  }
  return { onUploadComplete, calls, call }
}

async function startHost(more: Parameters<typeof startJobs>[0] = {}) {
  const host = createHost()
  const options = { onUploadComplete: host.onUploadComplete, ...more.options }
  return { ...host, ...(await startJobs({ ...more, options })) }
}

describe('the onUploadComplete handler', () => {
  test('receives every field of the upload', async () => {
    const { app, call } = await startHost()
    const relatedTo = randomUUID()
    const sha256 = createHash('sha256').update(SRT).digest('hex')
    const names = { filename: 'ä.srt', filetype: 'text/plain', name: 'Untertitel', relatedTo }
    const metadata = { ...names, kind: 'captions', checksum: `sha256:${sha256}`, mood: 'good' }
    const { id } = await createUpload(app, { ...captions, metadata })
    const { artifact, end } = await call(0)
    expect(artifact).toEqual({
      ...names,
      eventId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      artifactId: id,
      tenantId: expect.stringMatching(/^\w{12}$/),
      kind: 'captions',
      sizeBytes: SRT.length,
      sha256,
      metadata,
      completedAt: expect.any(Number),
    })
    expect(Object.isFrozen(artifact) && Object.isFrozen(artifact.metadata)).toBe(true)
    end()
  })

  test('does not receive fields that the client omitted', async () => {
    const { app, call } = await startHost()
    await createUpload(app, captions)
    const { artifact, end } = await call(0)
    const otherFields = ['completedAt', 'eventId', 'filename', 'kind', 'metadata', 'sizeBytes', 'tenantId']
    expect(Object.keys(artifact).sort()).toEqual(['artifactId', ...otherFields])
    end()
  })

  test('can read the original file until it returns, even after the conversion', async () => {
    const { app, call, dataDir } = await startHost()
    const { id } = await createUpload(app, captions)
    const { hooks, end } = await call(0)
    await waitForState(app, id, 'ready')
    expect(await readStatus(app, id)).toMatchObject({
      acknowledged: false,
      conversion: { result: 'converted' },
    })
    const bytes = Buffer.concat(await (await hooks.open()).toArray())
    expect(bytes.equals(SRT)).toBe(true)
    const before = await getRow(app)
    expect(before.kept_bytes).toBe(SRT.length + (before.served_bytes ?? 0))
    end()
    await waitUntil(async () => (await readStatus(app, id)).acknowledged, 'it is acknowledged')
    await waitUntil(
      async () => (await listArtifactBytes(dataDir)).kept.length === 1,
      'the original is deleted',
    )
    expect((await getRow(app)).kept_bytes).toBe(before.served_bytes)
    expect(hooks.signal.aborted).toBe(true)
    await expect(hooks.open()).rejects.toThrow('This delivery of the upload has already ended.')
    expect(() => hooks.recordOutcome(1)).toThrow('This delivery of the upload has already ended.')
  })

  test('runs for at most four uploads at once and does not delay conversions', async () => {
    const { app, calls, call } = await startHost()
    for (let count = 0; count < 6; count++)
      await waitForState(app, (await createUpload(app, captions)).id, 'ready')
    await call(3)
    expect(calls).toHaveLength(4)
    for (const { end } of calls) end()
    await call(5)
    for (const { end } of calls) end()
    await waitUntil(async () => (await listJobs(app)).length === 0, 'all uploads are delivered')
    expect(new Set(calls.map(({ artifact }) => artifact.eventId)).size).toBe(6)
  })
})

describe('a failing onUploadComplete handler', () => {
  test('is called again with the same event after increasing delays, and its last recorded outcome is stored', async () => {
    const { log, lines } = createLineLog()
    const { app, call, advance } = await startHost({ options: { log } })
    const { id } = await createUpload(app, captions)
    const first = await call(0)
    await first.hooks.recordOutcome({ tries: 1 })
    first.fail()
    await waitUntil(async () => (await listJobs(app)).some((job) => job.failures === 1), 'it has failed')
    await waitForState(app, id, 'ready')
    expect(await readStatus(app, id)).toMatchObject({ acknowledged: false, outcome: { tries: 1 } })
    expect(lines.join()).toContain('onUploadComplete failed; retrying')
    advance(1)
    const second = await call(1)
    expect(second.artifact).toEqual(first.artifact)
    // The outcome must be stored even though the handler fails before this promise settles.
    void second.hooks.recordOutcome({ tries: 2 })
    second.fail()
    await waitUntil(
      async () => (await listJobs(app)).some((job) => job.failures === 2),
      'it has failed again',
    )
    expect((await readStatus(app, id)).outcome).toEqual({ tries: 2 })
    advance(2)
    const third = await call(2)
    third.end()
    await waitUntil(async () => (await readStatus(app, id)).acknowledged, 'it is acknowledged')
    expect(await listJobs(app)).toEqual([])
  })

  test('is called again after it throws synchronously', async () => {
    let calls = 0
    const onUploadComplete = () => {
      calls += 1
      if (calls === 1) throw new Error('no')
    }
    const { app, advance } = await startJobs({ options: { onUploadComplete } })
    const { id } = await uploadWhole(app, SRT, { metadata: { kind: 'captions' } })
    await waitUntil(async () => (await listJobs(app)).some((job) => job.failures === 1), 'it has failed')
    advance(1)
    await waitUntil(async () => (await readStatus(app, id)).acknowledged, 'it is acknowledged')
  })

  test('is called again if its outcome cannot be stored, even if it does not await recordOutcome', async () => {
    const onUploadComplete: OnUploadComplete = (_artifact, { recordOutcome }) => void recordOutcome('kept')
    const { app, advance } = await startJobs({ options: { onUploadComplete } })
    const { db } = app.service.deps
    const stopFailing = await failOnChange(db, 'update of outcome on artifacts', 'the disk is full')
    const { id } = await createUpload(app, captions)
    await waitUntil(async () => (await listJobs(app)).some((job) => job.failures === 1), 'it has failed')
    expect((await readStatus(app, id)).acknowledged).toBe(false)
    await stopFailing()
    advance(1)
    await waitUntil(async () => (await readStatus(app, id)).acknowledged, 'it is acknowledged')
    expect((await readStatus(app, id)).outcome).toBe('kept')
  })

  test('is aborted after the timeout, and counts as failed', async () => {
    const clock = createManualClock()
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const wait = (ms: number, signal?: AbortSignal) =>
      ms === 600_000 ? Promise.race([late, clock.wait(ms, signal)]) : clock.wait(ms, signal)
    const { onUploadComplete, call } = createHost()
    const env = { PARLEY_CONVERSION_SECONDS: '500' }
    const app = await startApp(env, { clock: { ...clock, wait }, onUploadComplete })
    await createUpload(app, captions)
    const { hooks } = await call(0)
    expect(hooks.signal.aborted).toBe(false)
    resolve()
    await waitUntil(async () => (await listJobs(app)).some((job) => job.failures === 1), 'it has failed')
    expect(hooks.signal.aborted).toBe(true)
  })
})

describe('a recorded outcome', () => {
  /** Records the value in a handler and returns the error, if there is one, and the stored outcome. */
  async function record(value: unknown): Promise<{ error?: string; outcome: unknown }> {
    let error: string | undefined
    const onUploadComplete: OnUploadComplete = async (_artifact, { recordOutcome }) => {
      try {
        await recordOutcome(value)
      } catch (thrown) {
        error = (thrown as Error).message
      }
    }
    const app = await startApp({}, { onUploadComplete })
    const { id } = await createUpload(app, captions)
    await waitUntil(async () => (await readStatus(app, id)).acknowledged, 'it is acknowledged')
    const status = await readStatus(app, id)
    return {
      ...(error === undefined ? {} : { error }),
      outcome: 'outcome' in status ? status.outcome : 'none',
    }
  }

  const circular: unknown[] = []
  circular.push(circular)
  const nested = (depth: number) => JSON.parse('['.repeat(depth) + ']'.repeat(depth))

  test.each([
    ['null', null],
    ['a string', 'gone'],
    ['exactly 64 KiB of JSON', 'x'.repeat(64 * 1024 - 2)],
    ['nested 64 levels deep', nested(64)],
  ])('is stored if it is %s', async (_what, value) => {
    expect(await record(value)).toEqual({ outcome: value })
  })

  test.each([
    ['over 64 KiB', 'x'.repeat(64 * 1024 - 1), /at most 65536 bytes as JSON \(got 65537\)/],
    ['nested 65 levels deep', nested(65), /nested deeper than 64/],
    ['undefined', undefined, /is not a JSON value/],
    ['circular', circular, /is not a JSON value \(.*circular/],
    ['a bigint', 1n, /is not a JSON value \(.*BigInt/],
  ])('is rejected if it is %s', async (_what, value, error) => {
    expect(await record(value)).toEqual({ error: expect.stringMatching(error), outcome: 'none' })
  })
})

test('deleting an artifact aborts its onUploadComplete handler and prevents further calls', async () => {
  const { app, call, calls, advance } = await startHost()
  const { id } = await uploadWhole(app, randomBytes(10))
  const { hooks, fail } = await call(0)
  expect((await app.call('DELETE', `/artifacts/${id}`)).status).toBe(200)
  expect(hooks.signal.reason).toBe('removed')
  fail()
  expect(await listJobs(app)).toEqual([])
  advance(600)
  await uploadWhole(app, randomBytes(10))
  await call(1)
  expect(new Set(calls.map(({ artifact }) => artifact.artifactId)).size).toBe(2)
})

test('an undelivered upload waits for a server with an onUploadComplete handler, and a server without one logs a warning', async () => {
  const { app, dataDir, call } = await startHost()
  const { id } = await uploadWhole(app, SRT, { metadata: { kind: 'captions' } })
  const { artifact } = await call(0)
  await app.close()
  const env = { PARLEY_DATA_DIR: dataDir, PARLEY_PARENT_KEY: app.key }
  const { log, lines } = createLineLog()
  const without = await startJobs({ env, options: { log } })
  expect((await readStatus(without.app, id)).acknowledged).toBe(false)
  await waitUntil(async () => lines.join().includes('waiting for onUploadComplete'), 'the warning is logged')
  await without.app.close()
  const again = await startHost({ env })
  const second = await again.call(0)
  expect(second.artifact).toEqual(artifact)
  second.end()
  await waitUntil(async () => (await readStatus(again.app, id)).acknowledged, 'it is acknowledged')
})
