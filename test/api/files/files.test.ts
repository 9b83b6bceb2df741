/**
 * Tests that tenants can upload, list, read, download and delete their files but not other tenants' files.
 */

import { createReadStream } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import OpenAI, { toFile } from 'openai'
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { download, field, filePart, listStored, purpose, upload } from '../../support/files.ts'
import { makeFolder } from '../../support/process.ts'

const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, index) => (index * 31) % 251))

async function uploadMany(app: TestApp, count: number, of: (index: number) => string = () => 'assistants') {
  const ids: string[] = []
  for (let index = 0; index < count; index++) {
    const { body } = await upload(app, [filePart(`${index}`), field('purpose', of(index))])
    ids.push(body.id)
  }
  return ids
}

describe('the official client', () => {
  test('can download the bytes that it uploads from a stream, a File, a Blob or a buffer', async () => {
    const path = join(await makeFolder(), 'notes.bin')
    await writeFile(path, bytes)
    const app = await startApp()
    const client = app.openai()
    const sources = [
      createReadStream(path),
      new File([bytes], 'notes.bin', { type: 'text/plain' }),
      await toFile(new Blob([bytes]), 'notes.bin'),
      await toFile(bytes, 'notes.bin'),
    ]
    for (const file of sources) {
      const created = await client.files.create({ file, purpose: 'assistants' })
      expect(created).toEqual({
        id: expect.stringMatching(/^file-[0-9A-Za-z]{27}$/),
        object: 'file',
        bytes: bytes.length,
        created_at: expect.any(Number),
        filename: 'notes.bin',
        purpose: 'assistants',
        status: 'processed',
      })
      expect(Math.abs(created.created_at - Date.now() / 1000)).toBeLessThan(60)
      expect(await client.files.retrieve(created.id)).toEqual(created)
      expect(await client.files.waitForProcessing(created.id)).toEqual(created)
      const content = await client.files.content(created.id)
      expect(Buffer.from(await content.arrayBuffer()).equals(bytes)).toBe(true)
    }
  })

  test('can list files page by page in either order', async () => {
    const app = await startApp()
    const client = app.openai()
    const ids = await uploadMany(app, 5)
    const collect = async (query: { order?: 'asc' | 'desc'; limit: number }) => {
      const found: string[] = []
      for await (const file of client.files.list(query)) found.push(file.id)
      return found
    }
    expect(await collect({ limit: 2 })).toEqual(ids.toReversed())
    expect(await collect({ limit: 2, order: 'asc' })).toEqual(ids)
    expect(await collect({ limit: 5, order: 'asc' })).toEqual(ids)
  })

  test('can delete a file and its bytes', async () => {
    const folder = await makeFolder()
    const app = await startApp({ PARLEY_DATA_DIR: join(folder, 'data') })
    const client = app.openai()
    const { id } = await client.files.create({ file: await toFile(bytes, 'a'), purpose: 'batch' })
    expect((await listStored(join(folder, 'data'))).kept).toHaveLength(1)
    expect(await client.files.delete(id)).toEqual({ id, object: 'file', deleted: true })
    await expect(client.files.retrieve(id)).rejects.toThrow(OpenAI.NotFoundError)
    await expect(client.files.content(id)).rejects.toThrow(OpenAI.NotFoundError)
    await expect(client.files.delete(id)).rejects.toThrow(OpenAI.NotFoundError)
    expect(await listStored(join(folder, 'data'))).toEqual({ kept: [], incoming: [] })
  })

  test('can delete files while it lists them page by page', async () => {
    const app = await startApp()
    const client = app.openai()
    await uploadMany(app, 5)
    for await (const { id } of client.files.list({ limit: 2 })) await client.files.delete(id)
    expect((await client.files.list()).data).toEqual([])
  })

  test("can set a file's expiry", async () => {
    const app = await startApp({}, { clock: createFakeClock(1_800_000_000) })
    const file = await toFile(bytes, 'a')
    const expires_after = { anchor: 'created_at', seconds: 3600 } as const
    const created = await app.openai().files.create({ file, purpose: 'user_data', expires_after })
    expect(created.expires_at).toBe(1_800_003_600)
  })
})

describe('a file list', () => {
  test('returns null for first_id and last_id if it is empty', async () => {
    const app = await startApp()
    expect((await app.call('GET', '/v1/files')).body).toEqual({
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    })
  })

  test('returns its first and last ids and whether more files follow', async () => {
    const app = await startApp()
    const [first, second, third] = await uploadMany(app, 3)
    const page = (await app.call('GET', '/v1/files?limit=2')).body
    expect(page).toMatchObject({ object: 'list', first_id: third, last_id: second, has_more: true })
    const last = (await app.call('GET', `/v1/files?limit=2&after=${second}`)).body
    expect(last).toMatchObject({ first_id: first, last_id: first, has_more: false })
    expect((await app.call('GET', '/v1/files?limit=3')).body.has_more).toBe(false)
  })

  test('includes only matching files if it is filtered by purpose', async () => {
    const app = await startApp()
    const ids = await uploadMany(app, 4, (index) => (index % 2 === 0 ? 'batch' : 'vision'))
    const page = (await app.call('GET', '/v1/files?purpose=batch&limit=2&order=asc')).body
    expect(page.data.map(({ id }: { id: string }) => id)).toEqual([ids[0], ids[2]])
    expect(page.has_more).toBe(false)
  })

  test.each([
    ['limit=0', 'limit'],
    ['limit=10001', 'limit'],
    ['limit=two', 'limit'],
    ['order=up', 'order'],
    ['after=agent-1', 'after'],
    ['after=file-short', 'after'],
  ])('rejects the query %s', async (query, param) => {
    const app = await startApp()
    const answer = await app.call('GET', `/v1/files?${query}`)
    expect(answer.status).toBe(400)
    expect(answer.body.error).toMatchObject({ type: 'invalid_request_error', code: 'invalid_value', param })
  })

  test('accepts a limit of 10,000', async () => {
    const app = await startApp()
    expect((await app.call('GET', '/v1/files?limit=10000')).status).toBe(200)
  })
})

describe('expires_after', () => {
  const anchor = field('expires_after[anchor]', 'created_at')
  const seconds = (value: string) => field('expires_after[seconds]', value)
  const json = (value: object) => field('expires_after', JSON.stringify(value))

  test.each([
    ['in brackets', [anchor, seconds('3600')], 3_600],
    ['in brackets, at the maximum', [seconds('2592000'), anchor], 2_592_000],
    ['as JSON', [json({ anchor: 'created_at', seconds: 7200 })], 7_200],
  ])('accepts a value %s', async (_how, parts, expected) => {
    const app = await startApp()
    const { status, body } = await upload(app, [filePart(), purpose, ...parts])
    expect(status).toBe(200)
    expect(body.expires_at - body.created_at).toBe(expected)
  })

  test.each([
    ['below the minimum', [anchor, seconds('3599')], 'expires_after.seconds'],
    ['above the maximum', [anchor, seconds('2592001')], 'expires_after.seconds'],
    ['that is not a number', [anchor, seconds('soon')], 'expires_after.seconds'],
    ['that is a fraction', [anchor, seconds('3600.5')], 'expires_after.seconds'],
    ['without an anchor', [seconds('3600')], 'expires_after.anchor'],
    ['without seconds', [anchor], 'expires_after.seconds'],
    [
      'with an unknown anchor',
      [field('expires_after[anchor]', 'now'), seconds('3600')],
      'expires_after.anchor',
    ],
    ['as text', [field('expires_after', '3600')], 'expires_after'],
    ['as broken JSON', [field('expires_after', '{"anchor":')], 'expires_after'],
  ])('rejects a value %s', async (_how, parts, param) => {
    const app = await startApp()
    const { status, body } = await upload(app, [filePart(), purpose, ...parts])
    expect(status).toBe(400)
    expect(body.error.param).toBe(param)
    expect((await app.call('GET', '/v1/files')).body.data).toEqual([])
  })
})

describe("a missing file and another tenant's file", () => {
  test.each([
    ['GET', ''],
    ['GET', '/content'],
    ['HEAD', '/content'],
    ['DELETE', ''],
  ])('return the same 404 to %s /v1/files/{id}%s', async (method, rest) => {
    const app = await startApp()
    const other = await createTenant(app)
    const { body: file } = await upload(app)
    const ask = (id: string) => app.call(method, `/v1/files/${id}${rest}`, { key: other })
    const [foreign, missing] = [await ask(file.id), await ask(`file-${'0'.repeat(27)}`)]
    expect(foreign.status).toBe(404)
    expect(foreign.text).toBe(missing.text)
    if (method !== 'HEAD') expect(foreign.body.error.code).toBe('not_found')
    expect((await app.call('GET', `/v1/files/${file.id}`)).body).toEqual(file)
  })

  test('do not appear in lists, and the list after such an id is empty', async () => {
    const app = await startApp()
    const other = await createTenant(app)
    const { body: foreign } = await upload({ ...app, key: other })
    await upload(app)
    expect((await app.call('GET', '/v1/files', { key: other })).body.data).toEqual([foreign])
    const after = await app.call('GET', `/v1/files?order=asc&after=${foreign.id}`, { key: other })
    expect(after.body.data).toEqual([])
  })
})

describe('an agent key', () => {
  test.each([
    ['POST', '/v1/files'],
    ['GET', '/v1/files'],
    ['GET', '/v1/files/file-1'],
    ['GET', '/v1/files/file-1/content'],
    ['DELETE', '/v1/files/file-1'],
  ])('is rejected for %s %s', async (method, path) => {
    const app = await startApp()
    const { agent_key } = await app.createAgent()
    const answer = await app.call(method, path, { key: agent_key })
    expect(answer.status).toBe(403)
    expect(answer.body.error).toMatchObject({
      type: 'permission_error',
      code: 'insufficient_permissions',
    })
  })
})

describe('the tRPC procedures for files', () => {
  const ask = async (app: TestApp, method: string, procedure: string, input?: object) => {
    const query =
      method === 'GET' ? `?input=${encodeURIComponent(JSON.stringify({ json: input ?? {} }))}` : ''
    return app.call(method, `/trpc/${procedure}${query}`, method === 'GET' ? {} : { body: { json: input } })
  }

  test('can list, read and delete files', async () => {
    const app = await startApp()
    const { body: file } = await upload(app)
    const list = await ask(app, 'GET', 'files.list')
    expect(list.body.result.data.json.data).toEqual([file])
    expect((await ask(app, 'GET', 'files.get', { file_id: file.id })).body.result.data.json).toEqual(file)
    const deleted = await ask(app, 'POST', 'files.delete', { file_id: file.id })
    expect(deleted.body.result.data.json).toEqual({ id: file.id, object: 'file', deleted: true })
  })

  test('cannot upload or download file contents', async () => {
    const app = await startApp()
    const { body: file } = await upload(app)
    expect((await ask(app, 'GET', 'files.content', { file_id: file.id })).status).toBe(404)
    expect((await ask(app, 'POST', 'files.create', { purpose: 'assistants' })).status).toBe(404)
  })
})

test('files survive a restart', async () => {
  const dataDir = join(await makeFolder(), 'data')
  const first = await startApp({ PARLEY_DATA_DIR: dataDir })
  const { body: file } = await upload(first, [filePart(bytes), purpose])
  await first.close()
  const second = await startApp({ PARLEY_DATA_DIR: dataDir, PARLEY_PARENT_KEY: first.key })
  expect((await second.call('GET', '/v1/files')).body.data).toEqual([file])
  const content = await (await download(second, file.id)).arrayBuffer()
  expect(Buffer.from(content).equals(bytes)).toBe(true)
})

test('a download of a stored file that was truncated returns 500', async () => {
  const dataDir = join(await makeFolder(), 'data')
  const app = await startApp({ PARLEY_DATA_DIR: dataDir })
  const { body: file } = await upload(app, [filePart(bytes), purpose])
  const [name = ''] = (await listStored(dataDir)).kept
  const path = join(dataDir, 'files', name)
  await writeFile(path, (await readFile(path)).subarray(0, 100))
  const answer = await download(app, file.id)
  expect(answer.status).toBe(500)
  expect((await answer.json()).error.code).toBe('internal_error')
})
