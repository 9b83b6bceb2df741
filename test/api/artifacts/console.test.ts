/** Tests how console users manage artifacts, and that other sites cannot forge their requests. */
import { describe, expect, test } from 'vitest'
import { type CallOptions, startApp, type TestApp } from '../../support/app.ts'
import { asUser, behindProxy, claimKey, consoleHeaders } from '../../support/console.ts'
import { BODY_TYPE, toMetadata, tus, uploadWhole } from '../../support/uploads.ts'
import { reserveArtifact } from '../../support/watch.ts'

const tenBytes = Buffer.from('0123456789')
const [ada, bob] = ['ada@example.org', 'bob@example.org']

/** Starts a service in which Ada has claimed the first parent key and owns one artifact. */
async function startWithArtifact() {
  const app = await startApp(behindProxy)
  await claimKey(app, ada, app.key)
  const { id, location } = await uploadWhole(app, tenBytes, { metadata: { name: 'Mine' } })
  return { app, id, location }
}

type Page = Readonly<Record<string, string>>

/** Sends a request from Ada's browser with this page's headers. */
function send(app: TestApp, method: string, path: string, page: Page, more: Page = {}, body?: string) {
  const headers = { 'X-Email': ada, ...tus, ...page, ...more }
  return app.fetch(app.url + path, { method, headers, ...(body === undefined ? {} : { body }) })
}

const creation = () => ({ 'Upload-Length': '10', 'Upload-Metadata': toMetadata({ filename: 'clip.mp4' }) })
const part = (offset: number) => ({ 'Upload-Offset': String(offset), 'Content-Type': BODY_TYPE })

describe('a console user', () => {
  test('can read and delete their own artifacts', async () => {
    const { app, id } = await startWithArtifact()
    for (const path of ['', '/status', '/watch'])
      expect((await app.call('GET', `/artifacts/${id}${path}`, asUser(ada))).status).toBe(200)
    expect((await app.call('DELETE', `/artifacts/${id}`, asUser(ada))).status).toBe(200)
    expect((await app.call('GET', `/artifacts/${id}/status`, asUser(ada))).body.state).toBe('unknown')
  })

  test('can start an upload, send a part, read its offset and cancel it from a same-origin page', async () => {
    const { app } = await startWithArtifact()
    const begun = await send(app, 'POST', '/upload', consoleHeaders, creation())
    expect(begun.status).toBe(201)
    const location = begun.headers.get('location') as string
    expect((await send(app, 'PATCH', location, consoleHeaders, part(0), '0123')).status).toBe(204)
    expect((await send(app, 'HEAD', location, {})).headers.get('upload-offset')).toBe('4')
    expect((await send(app, 'DELETE', location, consoleHeaders)).status).toBe(204)
  })

  test("cannot read or delete another user's artifact, or reuse its id", async () => {
    const { app, id, location } = await startWithArtifact()
    expect((await app.call('GET', `/artifacts/${id}/status`, asUser(bob))).body).toEqual({
      artifactId: id,
      state: 'unknown',
    })
    for (const [method, path] of [
      ['GET', `/artifacts/${id}`],
      ['GET', `/artifacts/${id}/poster`],
      ['DELETE', `/artifacts/${id}`],
      ['HEAD', location],
      ['DELETE', location],
    ] as const)
      expect([method, path, (await app.call(method, path, asUser(bob, { headers: tus }))).status]).toEqual([
        method,
        path,
        404,
      ])
    const taken = { artifactId: id, filename: 'clip.mp4' }
    const headers = { ...tus, 'Upload-Length': '10', 'Upload-Metadata': toMetadata(taken) }
    expect((await app.call('POST', '/upload', asUser(bob, { headers }))).status).toBe(409)
    expect((await app.call('GET', `/artifacts/${id}`, asUser(ada))).text).toBe('0123456789')
  })

  test('can reserve an artifact over tRPC but not under /v1, which requires a key', async () => {
    const { app } = await startWithArtifact()
    expect((await app.call('POST', '/v1/artifacts', asUser(ada, { body: {} }))).status).toBe(401)
    const reserved = await app.call('POST', '/trpc/artifacts.reserve', asUser(ada, { body: { json: {} } }))
    expect(reserved.status).toBe(200)
  })

  test('has only the permissions of the token if the URL contains one', async () => {
    const { app, id } = await startWithArtifact()
    const { artifact_id, view_token } = await reserveArtifact(app)
    const see = (path: string, options: CallOptions = {}) => app.call('GET', path, asUser(bob, options))
    expect((await see(`/artifacts/${artifact_id}/status?token=${view_token}`)).status).toBe(200)
    expect((await see(`/artifacts/${id}/status?token=${view_token}`)).status).toBe(403)
    expect((await see(`/artifacts/${id}/status?token=${view_token}x`)).status).toBe(401)
  })
})

describe('a forged request', () => {
  const foreign = { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example', 'X-Requested-With': 'x' }
  const form = { 'Sec-Fetch-Site': 'same-origin' }

  test.each([
    ['cross-site headers', foreign],
    ['same-origin headers but without X-Requested-With', form],
    ['no origin headers', {}],
  ])('with %s cannot change an artifact', async (_what, page) => {
    const { app, id, location } = await startWithArtifact()
    expect((await send(app, 'DELETE', `/artifacts/${id}`, page)).status).toBe(403)
    expect((await send(app, 'POST', '/upload', page, creation())).status).toBe(403)
    expect((await send(app, 'DELETE', location, page)).status).toBe(403)
    expect((await send(app, 'PATCH', location, page, part(10), 'x')).status).toBe(403)
    expect((await app.call('GET', `/artifacts/${id}`)).status).toBe(200)
  })

  test.each(['GET', 'HEAD', 'POST'])(
    'cannot change an artifact by overriding the method of a %s request',
    async (method) => {
      const { app, id, location } = await startWithArtifact()
      const override = { 'X-HTTP-Method-Override': 'DELETE' }
      expect((await send(app, method, location, foreign, override)).status).toBe(403)
      expect((await app.call('GET', `/artifacts/${id}`)).status).toBe(200)
    },
  )

  test('cannot change an artifact with a token in the URL', async () => {
    const { app } = await startWithArtifact()
    const { artifact_id, upload_token } = await reserveArtifact(app)
    const path = `/artifacts/${artifact_id}?token=${upload_token}`
    expect((await app.call('DELETE', path, { key: null })).status).toBe(401)
    for (const method of ['POST', 'HEAD', 'PATCH'])
      expect(
        (await app.call(method, `/upload?token=${upload_token}`, { key: null, headers: tus })).status,
      ).toBe(method === 'POST' ? 401 : 405)
  })
})
