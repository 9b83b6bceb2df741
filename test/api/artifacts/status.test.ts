/** Tests how an artifact's status is read, awaited and streamed. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createTypedClient } from '../../support/rpc.ts'
import { createUpload, patchUpload, readStatus, uploadWhole, waitForState } from '../../support/uploads.ts'

const ID = '6f9619ff-8b86-4011-b42d-00c04fc964ff'
const OTHER = '1b4e28ba-2fa1-41d2-883f-0016d3cca427'
const tenBytes = Buffer.from('0123456789')
const pathOf = (id: string) => `/artifacts/${id}/status`
const served = {
  sha256: createHash('sha256').update(tenBytes).digest('hex'),
  acknowledged: true,
  conversion: { result: 'original', reason: expect.any(String) },
}

describe("an artifact's status", () => {
  test('contains only the id and `unknown` if the id is not in use', async () => {
    const app = await startApp()
    const answer = await app.call('GET', pathOf(ID))
    expect(answer).toMatchObject({ status: 200, body: { artifactId: ID, state: 'unknown' } })
    expect(Object.keys(answer.body)).toEqual(['artifactId', 'state'])
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.headers.get('protocol-version')).toBe('2')
  })

  test('includes the documented fields in each state', async () => {
    const app = await startApp()
    const metadata = { artifactId: ID, relatedTo: OTHER, kind: 'captions', name: ' Überblick ' }
    const upload = await createUpload(app, { size: 'deferred', metadata })
    const about = { artifactId: ID, kind: 'captions', relatedTo: OTHER, name: 'Überblick' }
    expect(await readStatus(app, ID)).toEqual({
      ...about,
      state: 'uploading',
      bytesReceived: 0,
      acknowledged: false,
    })
    await patchUpload(app, upload, 0, tenBytes.subarray(0, 4), { 'Upload-Length': '10' })
    expect(await readStatus(app, ID)).toEqual({
      ...about,
      state: 'uploading',
      bytesReceived: 4,
      size: 10,
      acknowledged: false,
    })
    await patchUpload(app, upload, 4, tenBytes.subarray(4))
    await waitForState(app, ID, 'ready')
    expect(await readStatus(app, ID)).toEqual({
      ...about,
      state: 'ready',
      bytesReceived: 10,
      size: 10,
      ...served,
    })
  })

  test('omits fields that the client did not send', async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, tenBytes)
    expect(await readStatus(app, id)).toEqual({
      artifactId: id,
      state: 'ready',
      kind: 'video',
      bytesReceived: 10,
      size: 10,
      ...served,
    })
  })

  test("does not report the upload as acknowledged before the host application's handler returns", async () => {
    const app = await startApp({}, { onUploadComplete: () => new Promise(() => {}) })
    const { id } = await uploadWhole(app, tenBytes)
    expect(await readStatus(app, id)).toMatchObject({ state: 'ready', acknowledged: false })
  })

  test('is `unknown` again after the artifact is deleted or its upload expires', async () => {
    const clock = createFakeClock()
    const app = await startApp({}, { clock })
    const { id } = await uploadWhole(app, tenBytes)
    expect(await app.call('DELETE', `/artifacts/${id}`)).toMatchObject({
      status: 200,
      body: { artifactId: id, deleted: true },
    })
    const unfinished = await createUpload(app)
    clock.advance(30 * 86_400)
    for (const gone of [id, unfinished.id])
      expect(await readStatus(app, gone)).toMatchObject({ artifactId: gone, state: 'unknown' })
  })

  test.each([
    ['cannot be read with an id that is not a UUID, even without a key', 'nonsense', null, 400],
    ['cannot be read without a key', ID, null, 401],
    ['cannot be read with a wrong key', ID, 'svc_wrong', 401],
  ])('%s', async (_what, id, key, status) => {
    const app = await startApp()
    const answer = await app.call('GET', pathOf(id), { key })
    expect(answer).toMatchObject({ status, body: { ok: false, error: expect.any(String) } })
  })

  test('cannot be read with an agent key and is `unknown` to another tenant', async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, tenBytes)
    const { agent_key } = await app.createAgent()
    expect((await app.call('GET', pathOf(id), { key: agent_key })).status).toBe(403)
    const key = await createTenant(app)
    const { body } = await app.call('GET', pathOf(id), { key })
    expect(body).toEqual({ artifactId: id, state: 'unknown' })
  })
})

describe("reading an artifact's status", () => {
  test('waits for a change with Prefer: wait', async () => {
    const app = await startApp()
    const upload = await createUpload(app)
    const waiting = app.call('GET', pathOf(upload.id), { headers: { Prefer: 'wait=30' } })
    await patchUpload(app, upload, 0, tenBytes.subarray(0, 3))
    const answer = await waiting
    expect(answer.headers.get('preference-applied')).toBe('wait=30')
    expect(answer.body.bytesReceived).toBe(3)
  })

  test("counts toward the stream limit of the client's address if the request has Prefer: wait", async () => {
    const app = await startApp({ PARLEY_MAX_STREAMS_ADDRESS: '1' })
    const reserved = (await app.call('POST', '/v1/artifacts', { body: {} })).body
    const { artifact_id: id, view_token: key } = reserved
    const leaving = new AbortController()
    const wait = (seconds: number) =>
      app.call('GET', pathOf(id), { key, headers: { Prefer: `wait=${seconds}` }, signal: leaving.signal })
    const both = [wait(30), wait(30)]
    // Either request may arrive first: one waits, and the other is rejected immediately.
    expect((await Promise.race(both)).status).toBe(429)
    leaving.abort()
    await Promise.allSettled(both)
    const headers = { Prefer: 'wait=1' }
    const second = () => app.call('GET', pathOf(id), { key, headers })
    await expect.poll(async () => (await second()).status).toBe(200)
  })

  test('returns the unchanged status when the wait times out', async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, tenBytes)
    const answer = await app.call('GET', pathOf(id), { headers: { Prefer: 'wait=1' } })
    expect(answer.body.state).toBe('ready')
  })

  test('streams changes until the artifact is ready if the client accepts an event stream', async () => {
    const app = await startApp()
    const upload = await createUpload(app)
    const controller = new AbortController()
    const response = await app.fetch(app.url + pathOf(upload.id), {
      headers: { Authorization: `Bearer ${app.key}`, Accept: 'text/event-stream' },
      signal: controller.signal,
    })
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(response.headers.get('cache-control')).toBe('no-store, no-transform')
    const [states, text] = [[] as string[], response.body?.pipeThrough(new TextDecoderStream())]
    await patchUpload(app, upload, 0, tenBytes)
    for await (const part of text ?? []) {
      states.push(...[...part.matchAll(/"state":"(\w+)"/g)].map(([, state]) => state as string))
      if (states.includes('ready')) break
    }
    controller.abort()
    expect([states[0], states.at(-1)]).toEqual(['uploading', 'ready'])
  })

  test('works over tRPC', async () => {
    const app: TestApp = await startApp()
    const { id } = await uploadWhole(app, tenBytes)
    expect(await createTypedClient(app).artifacts.status.query({ artifact_id: id })).toMatchObject({
      state: 'ready',
    })
  })
})

test('the typed client can watch an upload until it is ready', async () => {
  const app = await startApp()
  const upload = await createUpload(app, { size: 10, metadata: { artifactId: ID, kind: 'project' } })
  const states: string[] = []
  let isSent = false
  for await (const { state } of await createTypedClient(app).artifacts.watch.query({ artifact_id: ID })) {
    if (states.at(-1) !== state) states.push(state)
    if (state === 'uploading' && !isSent) {
      isSent = true
      await patchUpload(app, upload, 0, tenBytes)
    }
    if (state === 'ready') break
  }
  expect(states[0]).toBe('uploading')
  expect(states.at(-1)).toBe('ready')
})
