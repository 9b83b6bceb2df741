/** Tests how artifacts and posters are served, and which artifacts a token can open. */
import { describe, expect, test } from 'vitest'
import { serviceActor } from '../../../src/identity/audit.ts'
import { revokeParentKey } from '../../../src/identity/keys.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { exchange, toRequest } from '../../support/raw-connection.ts'
import { createUpload, uploadWhole } from '../../support/uploads.ts'
import { readRow, reserveArtifact, setArtifact, setConverted } from '../../support/watch.ts'

const tenBytes = Buffer.from('0123456789')

const dispositionOf = async (app: TestApp, id: string) =>
  (await app.call('GET', `/artifacts/${id}`)).headers.get('content-disposition')?.split(';')[0]

describe('a converted artifact', () => {
  test.each(['video/mp4', 'video/webm', 'image/png', 'image/jpeg', 'image/webp', 'text/vtt'])(
    'is served inline when its type is %s, unless the detected type differs',
    async (mediaType) => {
      const app = await startApp()
      const { id } = await uploadWhole(app, tenBytes)
      await setConverted(app, id, mediaType)
      expect(await dispositionOf(app, id)).toBe('inline')
      await setArtifact(app, id, { sniffed_type: 'application/octet-stream' })
      expect(await dispositionOf(app, id)).toBe('attachment')
    },
  )

  test.each(['image/svg+xml', 'text/html', 'application/xml', 'application/zip', 'image/gif', 'VIDEO/MP4'])(
    'is served as a download when its type is %s',
    async (mediaType) => {
      const app = await startApp()
      const { id } = await uploadWhole(app, tenBytes)
      await setConverted(app, id, mediaType)
      expect(await dispositionOf(app, id)).toBe('attachment')
    },
  )

  test('supports Range, If-Range and If-None-Match', async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, tenBytes)
    const ask = (headers: Record<string, string>) => app.call('GET', `/artifacts/${id}`, { headers })
    const tag = (await ask({})).headers.get('etag') as string
    const getPart = async (headers: Record<string, string>) => {
      const answer = await ask(headers)
      return [answer.status, answer.headers.get('content-range'), answer.status < 400 ? answer.text : '']
    }
    expect(await getPart({ Range: 'bytes=-3' })).toEqual([206, 'bytes 7-9/10', '789'])
    expect(await getPart({ Range: 'bytes=8-' })).toEqual([206, 'bytes 8-9/10', '89'])
    expect(await getPart({ Range: 'bytes=0-0' })).toEqual([206, 'bytes 0-0/10', '0'])
    expect(await getPart({ Range: 'bytes=10-' })).toEqual([416, 'bytes */10', ''])
    expect(await getPart({ Range: 'bytes=0-1,4-5' })).toEqual([200, null, '0123456789'])
    expect(await getPart({ Range: 'bytes=0-1', 'If-Range': tag })).toEqual([206, 'bytes 0-1/10', '01'])
    expect(await getPart({ Range: 'bytes=0-1', 'If-Range': '"other"' })).toEqual([200, null, '0123456789'])
    expect(await getPart({ Range: 'bytes=0-1', 'If-None-Match': tag })).toEqual([304, null, ''])
    expect(await getPart({ 'If-None-Match': '"other"' })).toEqual([200, null, '0123456789'])
  })

  test('returns the same headers for HEAD and GET', async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, tenBytes)
    const list = async (method: string) => {
      const { headers } = await app.call(method, `/artifacts/${id}`)
      return [...headers].filter(([name]) => !/^(date|x-request-id|connection|keep-alive)$/.test(name))
    }
    expect(await list('HEAD')).toEqual(await list('GET'))
  })

  test('has no poster until one is stored', async () => {
    const app = await startApp()
    const { id } = await uploadWhole(app, tenBytes)
    expect((await app.call('GET', `/artifacts/${id}/poster`)).status).toBe(404)
    const picture = await readRow(app, (await uploadWhole(app, Buffer.from('poster'))).id)
    await setArtifact(app, id, { poster_blob: picture.served_blob, poster_bytes: picture.served_bytes })
    const { status, text, headers } = await app.call('GET', `/artifacts/${id}/poster`)
    expect([status, text, headers.get('content-type')]).toEqual([200, 'poster', 'image/jpeg'])
    expect(headers.get('content-disposition')).toMatch(/^inline/)
    expect(headers.get('content-security-policy')).toBe("default-src 'none'; sandbox; frame-ancestors 'none'")
    const part = await app.call('GET', `/artifacts/${id}/poster`, { headers: { Range: 'bytes=0-1' } })
    expect([part.status, part.text]).toEqual([206, 'po'])
  })
})

describe('an artifact token', () => {
  test('grants access only to its artifact and directly related artifacts', async () => {
    const app = await startApp()
    const [first, second] = [await reserveArtifact(app), crypto.randomUUID()]
    const upload = (artifactId: string, relatedTo: string) =>
      createUpload(app, { metadata: { artifactId, relatedTo } })
    await upload(second, first.artifact_id)
    const { id: third } = await upload(crypto.randomUUID(), second)
    const ask = async (id: string) =>
      (await app.call('GET', `/artifacts/${id}/status`, { key: first.view_token })).status
    expect([await ask(first.artifact_id), await ask(second), await ask(third)]).toEqual([200, 200, 403])
  })

  test('grants access to two artifacts that are related to each other', async () => {
    const app = await startApp()
    const [first, second] = [await reserveArtifact(app), await reserveArtifact(app)]
    for (const [one, other] of [
      [first, second],
      [second, first],
    ] as const)
      await createUpload(app, { metadata: { artifactId: one.artifact_id, relatedTo: other.artifact_id } })
    for (const { view_token: key } of [first, second])
      for (const { artifact_id: id } of [first, second])
        expect((await app.call('GET', `/artifacts/${id}/status`, { key })).status).toBe(200)
  })

  test('is checked after the id is validated and before the artifact is read', async () => {
    const app = await startApp()
    const { view_token, upload_token, artifact_id: id } = await reserveArtifact(app)
    for (const path of ['', '/status', '/poster', '/watch']) {
      const ask = async (id: string, key: string | null) =>
        (await app.call('GET', `/artifacts/${id}${path}`, { key })).status
      expect([await ask('x', null), await ask('x', view_token)]).toEqual([400, 400])
      expect([await ask(id, null), await ask(id, `${view_token}x`)]).toEqual([401, 401])
      expect([await ask(crypto.randomUUID(), view_token), await ask(id, upload_token)]).toEqual([403, 403])
    }
  })

  test('stops authorizing open event streams when its parent key is revoked', async () => {
    const app = await startApp()
    const { view_token, artifact_id: id } = await reserveArtifact(app)
    const response = await app.fetch(`${app.url}/artifacts/${id}/status?token=${view_token}`, {
      headers: { Accept: 'text/event-stream' },
    })
    await revokeParentKey(app.service.deps, serviceActor, app.key.slice(4, 16))
    const text = await response.text()
    expect(text).toMatch(
      /^data: .*"state":"unknown".*\n\nevent: error\ndata: \{"ok":false,"error":"[^"]+"\}\n\n$/,
    )
    expect((await app.call('GET', `/artifacts/${id}/status?token=${view_token}`, { key: null })).status).toBe(
      401,
    )
  })

  test('is accepted in the URL of a HEAD request', async () => {
    const app = await startApp()
    const { view_token, artifact_id: id } = await reserveArtifact(app)
    const head = await app.call('HEAD', `/artifacts/${id}/status?token=${view_token}`, { key: null })
    expect([head.status, head.text]).toEqual([200, ''])
  })
})

test("a HEAD request for an artifact's status returns immediately, even if it accepts an event stream", async () => {
  const app = await startApp()
  const headers = ['Host: x', `Authorization: Bearer ${app.key}`, 'Accept: text/event-stream']
  const first = toRequest(`HEAD /artifacts/${crypto.randomUUID()}/status`, headers)
  const answers = await exchange(app, first + toRequest('GET /healthz', ['Host: x', 'Connection: close']))
  expect(answers).toContain('{"status":"ok"}')
})
