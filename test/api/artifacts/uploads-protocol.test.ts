/** Tests the responses to each method of the upload protocol (tus 1.0.0). */
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { startApp } from '../../support/app.ts'
import { listAuditRows, publicIdOf } from '../../support/audit.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import {
  BODY_TYPE,
  callUpload,
  createUpload,
  expectProtocol,
  type Headers,
  headUpload,
  patchUpload,
  postUpload,
  readArtifact,
  readOffset,
  toMetadata,
  tus,
  uploadWhole,
  waitForState,
} from '../../support/uploads.ts'

const error = { ok: false, error: expect.any(String) }
const hello = Buffer.from('hello')

describe('an OPTIONS request', () => {
  test.each(['/upload', '/upload/', '/upload/anything'])(
    'to %s returns the supported features without authentication',
    async (path) => {
      const app = await startApp({ PARLEY_MAX_UPLOAD_BYTES: '1000' })
      const { status, headers } = await app.call('OPTIONS', path, { key: null })
      expect(status).toBe(204)
      expect(headers.get('tus-version')).toBe('1.0.0')
      expect(headers.get('tus-max-size')).toBe('1000')
      expect(headers.get('tus-extension')).toBe(
        'creation,creation-with-upload,creation-defer-length,termination,expiration',
      )
    },
  )
})

describe('HEAD of an upload', () => {
  test('returns its offset, length, metadata and expiry', async () => {
    const app = await startApp({}, { clock: createFakeClock(1_800_000_000) })
    const metadata = { filename: 'a b.mp4', name: 'Häkelkurs', unknown: 'kept' }
    const begun = await createUpload(app, { size: 10, metadata })
    await patchUpload(app, begun, 0, hello)
    const answer = await headUpload(app, begun)
    expect(answer.status).toBe(200)
    expectProtocol(answer)
    expect(answer.headers.get('upload-offset')).toBe('5')
    expect(answer.headers.get('upload-length')).toBe('10')
    expect(answer.headers.get('upload-metadata')).toBe(toMetadata(metadata))
    expect(answer.headers.get('upload-expires')).toBe('Sat, 16 Jan 2027 08:00:00 GMT')
    expect(answer.headers.get('x-artifact-id')).toBe(begun.id)
  })

  test('returns the file size as the offset of a finished upload', async () => {
    const app = await startApp()
    const begun = await uploadWhole(app, hello)
    const { status, headers } = await headUpload(app, begun)
    expect(status).toBe(200)
    expect([headers.get('upload-offset'), headers.get('upload-length')]).toEqual(['5', '5'])
    expect(headers.has('upload-expires')).toBe(false)
  })

  test("returns 404 for an unknown upload and for another tenant's upload", async () => {
    const app = await startApp()
    const begun = await createUpload(app)
    for (const [target, location] of [
      [app, '/upload/nothing'],
      [app, `/upload/${begun.id.replaceAll('-', '')}`],
      [{ ...app, key: await createTenant(app) }, begun.location],
    ] as const) {
      const { status, headers } = await headUpload(target, { location })
      expect(status).toBe(404)
      expect(headers.has('upload-offset')).toBe(false)
    }
  })
})

describe('PATCH of an upload', () => {
  test('returns 204 with the new offset, and with the expiry time until the upload is complete', async () => {
    const app = await startApp()
    const begun = await createUpload(app, { size: 10 })
    const first = await patchUpload(app, begun, 0, hello)
    expect([first.status, first.headers.get('upload-offset')]).toEqual([204, '5'])
    expectProtocol(first)
    expect(first.headers.has('upload-expires')).toBe(true)
    const last = await patchUpload(app, begun, 5, hello)
    expect([last.status, last.headers.get('upload-offset')]).toEqual([204, '10'])
    expect(last.headers.has('upload-expires')).toBe(false)
    await waitForState(app, begun.id, 'ready')
    expect((await readArtifact(app, begun.id)).toString()).toBe('hellohello')
  })

  const rejected: [why: string, status: number, headers: Record<string, string>, offset?: number][] = [
    ['a different media type', 415, { 'Content-Type': 'application/octet-stream' }],
    ['an invalid offset', 400, { 'Upload-Offset': 'x' }],
    ['an offset before the stored bytes', 409, {}, 2],
    ['an offset after the stored bytes', 409, {}, 7],
    ['a different length', 400, { 'Upload-Length': '11' }],
    ['a checksum of the part', 400, { 'Upload-Checksum': 'sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=' }],
  ]
  test.each(rejected)(
    'rejects %s with %i and does not change the upload',
    async (_why, status, headers, offset = 5) => {
      const app = await startApp()
      const begun = await createUpload(app, { size: 10, body: hello })
      const answer = await patchUpload(app, begun, offset, hello, headers)
      expect(answer).toMatchObject({ status, body: error })
      expectProtocol(answer)
      expect(await readOffset(app, begun)).toBe(5)
      expect((await patchUpload(app, begun, 5, hello)).status).toBe(204)
    },
  )

  test("returns 404 for an unknown upload and for another tenant's upload", async () => {
    const app = await startApp()
    const begun = await createUpload(app, { size: 5 })
    expect((await patchUpload(app, { location: '/upload/none' }, 0, hello)).status).toBe(404)
    const otherTenant = { ...app, key: await createTenant(app) }
    expect((await patchUpload(otherTenant, begun, 0, hello)).status).toBe(404)
    expect(await readOffset(app, begun)).toBe(0)
  })

  test('can be sent as POST with X-HTTP-Method-Override, as can DELETE', async () => {
    const app = await startApp()
    const begun = await createUpload(app, { size: 5 })
    const headers = { 'X-HTTP-Method-Override': 'PATCH', 'Upload-Offset': '0', 'Content-Type': BODY_TYPE }
    expect((await callUpload(app, 'POST', begun.location, headers, hello)).status).toBe(204)
    const override = { 'X-HTTP-Method-Override': 'DELETE' }
    expect((await callUpload(app, 'POST', begun.location, override)).status).toBe(204)
    expect((await headUpload(app, begun)).status).toBe(404)
  })
})

describe('DELETE of an upload', () => {
  test('returns 204 and deletes it, whether or not it is finished', async () => {
    const app = await startApp()
    for (const begun of [await createUpload(app, { body: hello }), await uploadWhole(app, hello)]) {
      expectProtocol(await callUpload(app, 'DELETE', begun.location))
      expect((await headUpload(app, begun)).status).toBe(404)
      expect((await callUpload(app, 'DELETE', begun.location)).status).toBe(404)
      await waitForState(app, begun.id, 'unknown')
    }
  })

  test('records the caller in the audit log', async () => {
    const app = await startApp()
    const { location, id } = await uploadWhole(app, hello)
    await callUpload(app, 'DELETE', location, { 'X-Request-Id': 'my-request' })
    const [row] = (await listAuditRows(app)).filter(({ action }) => action === 'artifact.delete')
    expect(row).toMatchObject({
      actor_kind: 'parent_key',
      actor: publicIdOf(app.key),
      target_kind: 'artifact',
      target_id: id,
      request_id: 'my-request',
      details: JSON.stringify({ kind: 'video', bytes: 5 }),
    })
  })
})

describe('an upload request', () => {
  const versions = [undefined, '2.3.0', '0.2.2', '1.0', '']
  test.each(versions)('with protocol version %j returns 412 with the supported version', async (version) => {
    const app = await startApp()
    const begun = await createUpload(app)
    for (const [method, path] of [
      ['POST', '/upload'],
      ['HEAD', begun.location],
      ['PATCH', begun.location],
      ['DELETE', begun.location],
    ] as const) {
      const headers: Headers = version === undefined ? {} : { 'Tus-Resumable': version }
      const answer = await app.call(method, path, { headers })
      expect(answer.status).toBe(412)
      expect(answer.headers.get('tus-version')).toBe('1.0.0')
      if (method !== 'HEAD') expect(answer.body).toEqual(error)
    }
  })

  test('with an unsupported method returns 405 with an Allow header', async () => {
    const app = await startApp()
    const begun = await uploadWhole(app, hello)
    const at = async (method: string, path: string) => {
      const { status, headers } = await app.call(method, path, { headers: tus })
      return [status, headers.get('allow')]
    }
    expect(await at('GET', begun.location)).toEqual([405, 'HEAD, PATCH, DELETE, OPTIONS'])
    expect(await at('PUT', begun.location)).toEqual([405, 'HEAD, PATCH, DELETE, OPTIONS'])
    expect(await at('GET', '/upload')).toEqual([405, 'POST, OPTIONS'])
    expect(await at('PATCH', '/upload')).toEqual([405, 'POST, OPTIONS'])
  })

  test('returns 401 without a valid key, and 403 with an agent key, before any other check', async () => {
    const app = await startApp()
    const { agent_key: agentKey } = await app.createAgent()
    const begun = await createUpload(app)
    for (const [key, status] of [
      [null, 401],
      ['svc_wrong', 401],
      [agentKey, 403],
    ] as const) {
      const ask = (method: string, path: string) => app.call(method, path, { key, headers: tus })
      for (const answer of [await ask('POST', '/upload'), await ask('PATCH', begun.location)])
        expect(answer).toMatchObject({ status, body: error })
    }
  })

  test('is allowed from any origin', async () => {
    const app = await startApp()
    const origin = { Origin: 'https://shop.example' }
    const requestedHeaders = [
      'tus-resumable',
      'upload-length',
      'upload-metadata',
      'upload-offset',
      'x-http-method-override',
    ]
    const preflight = await app.call('OPTIONS', '/upload', {
      key: null,
      headers: {
        ...origin,
        'Access-Control-Request-Method': 'PATCH',
        'Access-Control-Request-Headers': requestedHeaders.join(','),
      },
    })
    expect(preflight.headers.get('access-control-allow-headers')).toBe(requestedHeaders.join(', '))
    expect(preflight.headers.get('access-control-allow-methods')).toContain('PATCH')
    const { headers } = await postUpload(app, { headers: origin })
    expect(headers.get('access-control-allow-origin')).toBe('*')
    for (const name of ['Location', 'Upload-Offset', 'Upload-Expires', 'X-Artifact-Id', 'Tus-Resumable'])
      expect(headers.get('access-control-expose-headers')).toContain(name)
  })
})
