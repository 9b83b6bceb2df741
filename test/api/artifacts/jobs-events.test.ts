/** Tests that onConversionEnd is called for each finished or failed conversion until it succeeds. */
import { randomUUID } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test, vi } from 'vitest'
import type { EndedConversion, OnConversionEnd, UploadHooks } from '../../../src/server/service.ts'
import { listJobs, startJobs, waitUntil } from '../../support/jobs.ts'
import { createUpload, readStatus, waitForState } from '../../support/uploads.ts'
import { makeZip } from '../../support/zip.ts'

// Conversions may exceed the default timeout on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const SRT = Buffer.from('1\n00:00:01,000 --> 00:00:02,000\nHi\n')
const captions = { size: SRT.length, body: SRT, metadata: { kind: 'captions' } }
const page = Buffer.from('<!doctype html><script>alert(1)</script>')

/** Starts a service with a handler that fails the first `failures` times. */
async function startHost(failures = 0, handle: OnConversionEnd = () => {}) {
  const events: EndedConversion[] = []
  const onConversionEnd = async (event: EndedConversion, hooks: UploadHooks) => {
    events.push(event)
    if (events.length <= failures) throw new Error('not today')
    await handle(event, hooks)
  }
  const env = { PARLEY_CONVERSION_TRIES: '1' }
  const started = await startJobs({ env, options: { onConversionEnd } })
  const untilDelivered = () =>
    waitUntil(
      async () => events.length > failures && (await listJobs(started.app)).length === 0,
      'all is delivered',
    )
  return { ...started, events, untilDelivered }
}

describe('the onConversionEnd handler', () => {
  test('receives details of the upload and of the converted file', async () => {
    const { app, events, untilDelivered } = await startHost()
    const { id } = await createUpload(app, captions)
    await untilDelivered()
    expect(events).toEqual([
      {
        eventId: expect.stringMatching(/^[0-9a-f-]{36}-converted$/),
        artifactId: id,
        tenantId: expect.stringMatching(/^\w{12}$/),
        kind: 'captions',
        filename: 'clip.mp4',
        sizeBytes: SRT.length,
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        metadata: { filename: 'clip.mp4', kind: 'captions' },
        completedAt: expect.any(Number),
        result: 'converted',
        mediaType: 'text/vtt',
        servedBytes: expect.any(Number),
        endedAt: expect.any(Number),
      },
    ])
  })

  test('receives the reason why an upload could not be converted', async () => {
    const { app, events, untilDelivered } = await startHost()
    const { id } = await createUpload(app, { size: page.length, body: page })
    await untilDelivered()
    expect(events).toMatchObject([
      { artifactId: id, result: 'original', reason: 'The file is not a video in a supported format.' },
    ])
  })

  test('receives an event when a dangerous upload is deleted', async () => {
    const bomb = makeZip([{ name: 'zeros', data: Buffer.alloc(100 * 1024 ** 2) }])
    let failure: unknown
    const { app, events, untilDelivered } = await startHost(0, async (_event, { open }) => {
      failure = await open().catch((error: unknown) => error)
    })
    const metadata = { kind: 'project', artifactId: randomUUID() }
    const { id } = await createUpload(app, { size: bomb.length, body: bomb, metadata })
    await untilDelivered()
    expect(events).toMatchObject([{ artifactId: id, result: 'rejected', reason: expect.any(String) }])
    expect(events[0]).not.toHaveProperty('mediaType')
    expect(failure).toMatchObject({ reason: 'not_found' })
    expect(await readStatus(app, id)).toMatchObject({ state: 'unknown', reason: 'dangerous' })
  })

  test('is called again with the same event until it succeeds', async () => {
    const { app, events, advance, untilDelivered } = await startHost(2)
    await createUpload(app, captions)
    for (const failures of [1, 2]) {
      const isBack = async () => (await listJobs(app)).some((job) => job.failures === failures)
      await waitUntil(isBack, `it failed ${failures} times`)
      advance(600)
    }
    await untilDelivered()
    expect(events).toHaveLength(3)
    expect(events[1]).toEqual(events[0])
    expect(events[2]).toEqual(events[0])
  })

  test('can read the served bytes and record an outcome', async () => {
    let served = ''
    const { app, untilDelivered } = await startHost(0, async (_event, { open, recordOutcome }) => {
      served = (await buffer(await open())).toString()
      await recordOutcome({ moved: true })
    })
    const { id } = await createUpload(app, captions)
    await untilDelivered()
    expect(served).toMatch(/^WEBVTT/)
    expect(await readStatus(app, id)).toMatchObject({ state: 'ready', outcome: { moved: true } })
  })

  test('is not called for an upload that is deleted before its last byte arrives', async () => {
    const { app, events } = await startHost()
    const { id } = await createUpload(app, { size: 10 })
    await app.call('DELETE', `/artifacts/${id}`)
    const other = await createUpload(app, captions)
    await waitForState(app, other.id, 'ready')
    await waitUntil(async () => events.length > 0, 'it is called')
    expect(events.map(({ artifactId }) => artifactId)).toEqual([other.id])
  })
})
