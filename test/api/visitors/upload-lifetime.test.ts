/** Tests when the files that visitors upload are kept, and when they are deleted. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createArtifactSweeper } from '../../../src/artifacts/maintenance.ts'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { eventually } from '../../support/process.ts'
import { createUpload, readArtifact } from '../../support/uploads.ts'
import { readState, reserve, sendUpload, startUploads, upload, zip } from '../../support/visitor-uploads.ts'
import { beginSession } from '../../support/visitors.ts'

const harness = await startChatHarness()
const HOUR = 3_600
const DAY = 24 * HOUR

const sweep = (app: TestApp) => createArtifactSweeper(app.service.deps).run()

describe('an upload in a message is kept', () => {
  test('if the message is edited without attachments, and the model receives it again', async () => {
    const { app, clock, one } = await startUploads(harness)
    const sent = await upload(app, one)
    const { conversation, turn } = await sendUpload(one, sent)
    const edited = await sendUpload(one, sent, { attachments: undefined, replaces: turn.id })
    expect(edited.conversation.id).toBe(conversation.id)
    const file = { type: 'file', name: 'logs.zip', part: 1, artifact_id: sent.id, bytes: zip.length }
    expect(edited.item).toMatchObject({ text: 'Look.', attachments: [file] })
    const { body } = (await harness.listChats()).at(-1) ?? {}
    expect(JSON.stringify(body)).toContain(sent.id)
    clock.advance(3 * DAY)
    for (let round = 0; round < 3; round++) await sweep(app)
    expect((await readArtifact(app, sent.id)).equals(zip)).toBe(true)
  })

  test('if an edit removes it, because the log keeps the earlier message', async () => {
    const { app, clock, one } = await startUploads(harness)
    const sent = await upload(app, one)
    const { turn } = await sendUpload(one, sent)
    const edited = await sendUpload(one, sent, { attachments: [], replaces: turn.id })
    expect(edited.item).not.toHaveProperty('attachments')
    clock.advance(3 * DAY)
    await sweep(app)
    expect((await readArtifact(app, sent.id)).equals(zip)).toBe(true)
  })

  test('if an edit sends it again or adds another upload, or if the visitor requests another answer', async () => {
    const { app, clock, one } = await startUploads(harness)
    const [first, second] = [await upload(app, one), await upload(app, one)]
    const { turn } = await sendUpload(one, first)
    const attachments = [first, second].map(({ id }) => ({ type: 'upload' as const, upload: { id } }))
    const edited = await sendUpload(one, first, { attachments, replaces: turn.id })
    expect(edited.item.attachments).toMatchObject([{ artifact_id: first.id }, { artifact_id: second.id }])
    const again = await one.visitor.regenerate.mutate({ turn: edited.turn.id, client_id: randomUUID() })
    expect(again.item.attachments).toEqual(edited.item.attachments)
    clock.advance(3 * DAY)
    await sweep(app)
    for (const { id } of [first, second]) expect((await readArtifact(app, id)).equals(zip)).toBe(true)
  })
})

describe("visitors' uploads are deleted", () => {
  const sweep = (app: TestApp) => createArtifactSweeper(app.service.deps).run()

  test('a day after they are complete, unless a message contains them', async () => {
    const { app, clock, one } = await startUploads(harness)
    const unsent = await upload(app, one)
    const sent = await upload(app, one)
    await sendUpload(one, sent)
    clock.advance(25 * HOUR)
    await sweep(app)
    expect((await readState(app, unsent)).status).toBe(404)
    expect((await readArtifact(app, sent.id)).equals(zip)).toBe(true)
    clock.advance(2 * HOUR)
    await sweep(app)
    expect((await readArtifact(app, sent.id)).equals(zip)).toBe(true)
  })

  test('if the message that was to contain them was never stored', async () => {
    const { app, clock, one } = await startUploads(harness)
    const reserved = await upload(app, one)
    await app.service.deps.visitorUploads.keep([reserved.id])
    clock.advance(25 * HOUR)
    await sweep(app)
    expect((await readState(app, reserved)).status).toBe(200)
    clock.advance(2 * HOUR)
    await sweep(app)
    expect((await readState(app, reserved)).status).toBe(404)
  })

  test('with their conversation', async () => {
    const { app, one } = await startUploads(harness)
    const reserved = await upload(app, one)
    const { conversation } = await sendUpload(one, reserved)
    await one.visitor.delete.mutate({ conversation: conversation.id })
    expect((await readState(app, reserved)).status).toBe(404)
    const list = await app.call('GET', '/v1/artifacts')
    expect(list.body.data).toEqual([])
  })

  test('with their visitor, even if they are unsent or unfinished', async () => {
    const { app, one, key } = await startUploads(harness)
    const sent = await upload(app, one)
    await sendUpload(one, sent)
    const unsent = await upload(app, one)
    const unfinished = await reserve(one)
    await createUpload({ ...app, key: unfinished.token }, { size: zip.length, body: zip.subarray(0, 100) })
    const other = await upload(app, await beginSession(app, key))
    const { body: erasure } = await app.call('DELETE', `/v1/visitors/${one.id}`)
    const readReceipt = async () => (await app.call('GET', `/v1/erasures/${erasure.id}`)).body
    await eventually(async () => (await readReceipt()).status, 'done')
    for (const gone of [sent, unsent, unfinished]) expect((await readState(app, gone)).status).toBe(404)
    expect((await readState(app, other)).status).toBe(200)
    expect((await readReceipt()).counts).toMatchObject({ conversations: 1, blobs: 1 })
  })
})
