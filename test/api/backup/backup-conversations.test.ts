/** Tests that a backup contains the stored conversations, consistent with the main database. */
import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { createArtifactSweeper } from '../../../src/artifacts/maintenance.ts'
import type { TestApp } from '../../support/app.ts'
import { backUp, readEntries, readUnpacked, restoreArchive, writeArchive } from '../../support/backup.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { maintain, STORING, storeChat } from '../../support/conversations.ts'
import { startupErrorOf } from '../../support/database.ts'
import { makeFolder } from '../../support/process.ts'
import { readArtifact } from '../../support/uploads.ts'
import {
  readState,
  sendUpload,
  startUploads,
  upload,
  uploadRules,
  zip,
} from '../../support/visitor-uploads.ts'

vi.setConfig({ testTimeout: 60_000 })

const harness = await startChatHarness()
const CANARY = 'numbat-4410'

let folder: string
let dataDir: string
let target: string
let archive: string

beforeEach(async () => {
  folder = await makeFolder()
  dataDir = join(folder, 'data')
  target = join(folder, 'restored')
  archive = join(folder, 'backup.tar')
})

const start = (dir = dataDir, app?: TestApp) =>
  harness.start({ PARLEY_DATA_DIR: dir, ...(app && { PARLEY_PARENT_KEY: app.key }) })

async function readTexts(app: TestApp, conversation: string): Promise<string> {
  return JSON.stringify((await app.call('GET', `/v1/conversations/${conversation}/items`)).body)
}

const listIds = async (app: TestApp) =>
  (await app.call('GET', '/v1/conversations')).body.data.map(({ id }: { id: string }) => id)

describe('a backup of a running server', () => {
  test('contains its conversations, which the restored server reads and continues', async () => {
    const app = await start()
    const { agent_id: id } = await app.createAgent(STORING)
    const model = `agent/${id}`
    const conversation = await storeChat(app, id, CANARY)
    const { body: first } = await app.call('POST', '/v1/responses', {
      body: { model, input: 'My name is Ada.' },
    })
    const report = await backUp(dataDir, archive)
    expect(report).toMatchObject({
      conversations: 'included',
      conversations_schema: expect.stringMatching(/^\d{4}_/),
      rows: { agents: 1, conversations: 2, turns: 2, items: 4 },
    })
    expect([...(await readEntries(archive)).keys()].slice(1, 3)).toEqual(['parley.db', 'conversations.db'])
    expect(await readdir(join(dataDir, '.backup'))).toEqual(['.lock'])

    const restored = await restoreArchive(archive, target)
    expect(restored.rows).toEqual(report.rows)
    const again = await start(target, app)
    expect(await readTexts(again, conversation)).toContain(CANARY)
    expect((await again.call('GET', `/v1/responses/${first.id}`)).body).toEqual(first)
    const second = await again.call('POST', '/v1/responses', {
      body: { model, input: 'What is my name?', previous_response_id: first.id },
    })
    expect(second.status).toBe(200)
    expect(await maintain(again)).toMatchObject({ conversations: 0 })
  })

  test('contains the images in conversations, unless it omits conversations', async () => {
    const app = await start()
    const url = `data:image/png;base64,${randomBytes(40_000).toString('base64')}`
    const content = [{ type: 'input_image', image_url: url, detail: 'auto' }]
    const items = [{ type: 'message', role: 'user', content }]
    const { body: conversation } = await app.call('POST', '/v1/conversations', { body: { items } })
    await backUp(dataDir, archive, {}, { withConversations: false })
    expect((await readUnpacked(archive)).includes(url)).toBe(false)
    await rm(archive)
    await backUp(dataDir, archive)
    await restoreArchive(archive, target)
    const restored = await start(target, app)
    expect(await readTexts(restored, conversation.id)).toContain(url)
    const { fileBlobs } = restored.service.deps
    const blobs: string[] = []
    for await (const { name } of fileBlobs.list()) blobs.push(name)
    await restored.call('DELETE', `/v1/conversations/${conversation.id}`)
    await expect(fileBlobs.open(blobs[0] as string)).rejects.toThrow(/ENOENT/)
  })

  test("contains visitors' uploads, which the restored server can serve, and deletes with their conversation", async () => {
    const { app, clock, one } = await startUploads(harness, uploadRules, { PARLEY_DATA_DIR: dataDir })
    const sent = await upload(app, one)
    const { conversation } = await sendUpload(one, sent)
    await backUp(dataDir, archive)
    await restoreArchive(archive, target)
    const restored = await harness.start(
      { PARLEY_DATA_DIR: target, PARLEY_PARENT_KEY: app.key },
      { clock: { ...clock, now: () => clock.now() + 3 * 86_400_000 } },
    )
    await createArtifactSweeper(restored.service.deps).run()
    expect((await readArtifact(restored, sent.id)).equals(zip)).toBe(true)
    await restored.call('DELETE', `/v1/conversations/${conversation.id}`)
    expect((await readState(restored, sent)).status).toBe(404)
    expect((await readState(app, sent)).status).toBe(200)
  })

  test('contains a running turn, which the restored server ends as interrupted', async () => {
    const app = await start()
    const { agent_id: id } = await app.createAgent(STORING)
    const { body } = await app.call('POST', '/v1/responses', {
      body: { model: `agent/${id}`, input: '{{up:hang}}', background: true },
    })
    await backUp(dataDir, archive)
    await restoreArchive(archive, target)
    const restored = await start(target, app)
    const read = async () => (await restored.call('GET', `/v1/responses/${body.id}`)).body
    await expect.poll(read).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'interrupted' },
    })
    await app.call('POST', `/v1/responses/${body.id}/cancel`)
  })

  test('omits its conversations with --without-conversations', async () => {
    const app = await start()
    const { agent_id: id } = await app.createAgent(STORING)
    await storeChat(app, id, CANARY)
    const report = await backUp(dataDir, archive, {}, { withConversations: false })
    expect(report.conversations).toBe('omitted')
    expect(report.rows).not.toHaveProperty('turns')
    expect((await readUnpacked(archive)).includes(CANARY)).toBe(false)
    // Earlier versions of Parley can restore this archive.
    expect(JSON.parse(String((await readEntries(archive)).get('parley-backup.json')))).toMatchObject({
      format: 1,
    })
    expect((await restoreArchive(archive, target)).conversations).toBe('omitted')
    const restored = await start(target, app)
    expect(await listIds(restored)).toEqual([])
    expect(existsSync(join(target, 'conversations.db'))).toBe(false)
  })

  test('uses the format of earlier versions if there are no conversations', async () => {
    await start()
    expect((await backUp(dataDir, archive)).conversations).toBe('none')
    const entries = await readEntries(archive)
    expect(JSON.parse(String(entries.get('parley-backup.json')))).toMatchObject({ format: 1 })
    expect([...entries.keys()]).not.toContain('conversations.db')
  })
})

test('an archive from an earlier version, which has no entry for conversations, can be restored', async () => {
  const app = await start()
  await app.createAgent(STORING)
  await backUp(dataDir, archive)
  const entries = await readEntries(archive)
  const manifest = JSON.parse(String(entries.get('manifest.json')))
  delete manifest.conversations
  const text = Buffer.from(JSON.stringify(manifest))
  const digest = createHash('sha256').update(text).digest('hex')
  entries.set('manifest.json', text)
  entries.set('manifest.sha256', Buffer.from(`${digest}  manifest.json\n`))
  await writeArchive(archive, [...entries])
  expect((await restoreArchive(archive, target)).conversations).toBe('none')
  expect((await (await start(target, app)).call('GET', '/v1/agents')).body.data).toHaveLength(1)
})

describe('restoring an archive fails if', () => {
  test("the directory contains another installation's conversations", async () => {
    const app = await start()
    await backUp(dataDir, archive)
    const { agent_id: id } = await app.createAgent(STORING)
    await storeChat(app, id, 'Hello')
    await app.service.close()
    await mkdir(target)
    await copyFile(join(dataDir, 'conversations.db'), join(target, 'conversations.db'))
    expect(await startupErrorOf(restoreArchive(archive, target))).toContain(
      'contains other files (such as conversations.db)',
    )
  })

  test('its conversations come from a newer version', async () => {
    const app = await start()
    const { agent_id: id } = await app.createAgent(STORING)
    await storeChat(app, id, 'Hello')
    await backUp(dataDir, archive)
    const entries = await readEntries(archive)
    const head = JSON.parse(String(entries.get('parley-backup.json')))
    entries.set(
      'parley-backup.json',
      Buffer.from(JSON.stringify({ ...head, conversations_schema: '1999_from_the_future' })),
    )
    await writeArchive(archive, [...entries])
    expect(await startupErrorOf(restoreArchive(archive, target))).toContain('written by a newer version')
  })
})

describe('when parley.db is older than conversations.db, maintenance', () => {
  test('keeps conversations until they expire if their agent is missing from parley.db', async () => {
    const app = await start()
    await backUp(dataDir, archive)
    const { agent_id: id } = await app.createAgent(STORING)
    const conversation = await storeChat(app, id, CANARY)
    await app.service.close()
    // Restores the older main database and keeps the newer conversations, as if only one of the files had
    // been copied.
    await restoreArchive(archive, target)
    await copyFile(join(dataDir, 'conversations.db'), join(target, 'conversations.db'))
    const mixed = await start(target, app)
    expect(await maintain(mixed)).toMatchObject({ conversations: 0 })
    expect(await readTexts(mixed, conversation)).toContain(CANARY)
    const { body } = await mixed.call('GET', `/v1/conversations/${conversation}`)
    expect(await maintain(mixed, body.parley.expires_at)).toMatchObject({ conversations: 1 })
  })

  test('deletes conversations if the audit log records the deletion of their agent', async () => {
    const app = await start()
    const [deleted, other] = [await app.createAgent(STORING), await app.createAgent(STORING)]
    await storeChat(app, deleted.agent_id, CANARY)
    const kept = await storeChat(app, other.agent_id, 'Hello')
    await app.service.close()
    await copyFile(join(dataDir, 'conversations.db'), join(folder, 'older.db'))
    const later = await start(dataDir, app)
    expect((await later.call('DELETE', `/v1/agents/${deleted.agent_id}`)).status).toBe(200)
    await later.service.close()
    await copyFile(join(folder, 'older.db'), join(dataDir, 'conversations.db'))
    const mixed = await start(dataDir, app)
    await expect.poll(() => listIds(mixed)).toEqual([kept])
  })
})
