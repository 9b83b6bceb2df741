/** Tests the files that visitors upload for their messages: rights, limits, and what the model receives. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { identify, signIdentity, startIdentityVisit } from '../../support/identities.ts'
import { eventually } from '../../support/process.ts'
import {
  callUpload,
  createUpload,
  patchUpload,
  postUpload,
  readArtifact,
  readOffset,
} from '../../support/uploads.ts'
import {
  put,
  type Reserved,
  readState,
  reserve,
  sendUpload,
  startUploads,
  upload,
  uploadAgent,
  uploadRules,
  zip,
} from '../../support/visitor-uploads.ts'
import { asVisitor, beginSession } from '../../support/visitors.ts'

const harness = await startChatHarness()

const HOUR = 3_600

const failure = (httpStatus: number, more: object = {}) => ({ data: { httpStatus, ...more } })

describe("a visitor's upload", () => {
  test('is described to the model by name, type, size and id, and its owner can download it', async () => {
    const { app, one, agentId } = await startUploads(harness)
    const reserved = await upload(app, one)
    const sent = await sendUpload(one, reserved)
    const [{ body } = { body: {} }] = await harness.listChats()
    const { messages } = body as { messages: { content: unknown }[] }
    const about = { artifact_id: reserved.id, media_type: 'application/zip', bytes: zip.length }
    expect(messages.at(-1)?.content).toEqual([
      { type: 'text', text: 'Look.' },
      { type: 'text', text: `[Uploaded file: logs.zip]\n${JSON.stringify(about)}` },
    ])
    const file = { type: 'file', name: 'logs.zip', part: 1, artifact_id: reserved.id, bytes: zip.length }
    expect(sent.item).toMatchObject({ text: 'Look.', attachments: [file] })
    const opened = await one.visitor.open.query({ conversation: sent.conversation.id })
    expect(opened.items[0]?.attachments).toEqual([file])
    expect((await readArtifact(app, reserved.id)).equals(zip)).toBe(true)
    expect((await readState(app, reserved)).body).toMatchObject({
      ...{ kind: 'attachment', state: 'ready', filename: 'logs.zip', mediaType: 'application/zip' },
      visitor: { id: one.id, agentId },
    })
  })

  test('continues at the offset that the server has stored', async () => {
    const { app, one } = await startUploads(harness)
    const reserved = await reserve(one)
    const target = { ...app, key: reserved.token }
    const begun = await createUpload(target, { size: zip.length, body: zip.subarray(0, 2_000) })
    expect(await readOffset(target, begun)).toBe(2_000)
    expect((await patchUpload(target, begun, 2_000, zip.subarray(2_000))).status).toBe(204)
    await sendUpload(one, reserved)
    expect((await readArtifact(app, reserved.id)).equals(zip)).toBe(true)
  })

  test('is downloaded as a file, so that a browser does not run its content', async () => {
    const { app, one } = await startUploads(harness)
    const text = Buffer.from('<script>alert(1)</script>')
    const { id } = await upload(app, one, 'page.txt', text)
    const response = await app.fetch(`${app.url}/artifacts/${id}`, {
      headers: { Authorization: `Bearer ${app.key}` },
    })
    expect(response.headers.get('content-type')).toContain('text/plain')
    expect(response.headers.get('content-disposition')).toMatch(/^attachment/)
    await response.arrayBuffer()
  })

  test('can be sent again in the same conversation, but not in a different one', async () => {
    const { app, one } = await startUploads(harness)
    const reserved = await upload(app, one)
    const { conversation } = await sendUpload(one, reserved)
    await sendUpload(one, reserved, { conversation: conversation.id })
    await expect(sendUpload(one, reserved)).rejects.toMatchObject(
      failure(400, { code: 'upload_used', param: 'attachments[0]' }),
    )
  })

  test('can be sent after its visitor proves an identity, and is deleted with that visitor', async () => {
    const attachments = { types: ['text'], uploads: uploadRules }
    const visit = await startIdentityVisit({}, {}, { definition: { attachments } })
    const { app, key } = visit
    const anonymous = await beginSession(app, key)
    const [reserved, unsent] = [await upload(app, anonymous), await upload(app, anonymous)]
    const one = await identify(visit, await signIdentity(visit), anonymous.token)
    expect((await sendUpload(one, reserved)).item.attachments).toMatchObject([{ artifact_id: reserved.id }])
    expect((await readState(app, reserved)).body.visitor.id).toBe(one.id)
    await expect(sendUpload(anonymous, unsent)).rejects.toMatchObject(
      failure(400, { code: 'upload_not_found' }),
    )
    expect((await app.call('DELETE', `/v1/visitors/${one.id}`)).status).toBe(202)
    for (const gone of [reserved, unsent])
      await eventually(async () => (await readState(app, gone)).status, 404)
  })

  test('can be deleted by its visitor until it is in a message', async () => {
    const { app, one } = await startUploads(harness)
    const removed = await upload(app, one)
    const remove = ({ id, token }: Reserved) => app.call('DELETE', `/artifacts/${id}`, { key: token })
    expect((await remove(removed)).status).toBe(200)
    expect((await readState(app, removed)).status).toBe(404)
    const kept = await upload(app, one)
    await sendUpload(one, kept)
    expect((await remove(kept)).status).toBe(403)
    expect((await readState(app, kept)).status).toBe(200)
  })
})

describe('an upload is rejected', () => {
  test.each([
    ['an extension that the agent does not accept', 'tool.exe', 100, 400, 'filename'],
    ['a name without an extension', 'zip', 100, 400, 'filename'],
    ['a file that is larger than the limit', 'logs.zip', 10_001, 413, 'bytes'],
  ])('before it starts: %s', async (_, filename, bytes, status, param) => {
    const { one } = await startUploads(harness)
    await expect(reserve(one, filename, bytes)).rejects.toMatchObject(failure(status, { param }))
  })

  test.each([
    ['the agent accepts no uploads', { attachments: { types: ['text'] } }],
    ['the agent has no attachments', {}],
  ])('if %s', async (_, more) => {
    const { app } = await startUploads(harness)
    const text = uploadAgent(undefined, { conversations: { keep: '30d' }, ...more })
    const { agent_key: key } = await app.createAgent(text)
    const one = await beginSession(app, key)
    await expect(reserve(one)).rejects.toMatchObject(failure(400, { code: 'attachment_not_allowed' }))
  })

  test('if the agent stores no conversations', async () => {
    const { app } = await startUploads(harness)
    const { agent_key: key } = await app.createAgent(uploadAgent(uploadRules, {}))
    await expect(beginSession(app, key)).rejects.toMatchObject(failure(400, { code: 'conversations_off' }))
    const self = await app.call('GET', '/v1/agents/me', { key })
    expect(self.body.attachments.uploads).toBeNull()
  })

  test('with an agent key but without a visitor', async () => {
    const { app, key } = await startUploads(harness)
    const nobody = { visitor: asVisitor(app, key) }
    await expect(reserve(nobody)).rejects.toMatchObject(failure(403, { code: 'visitor_required' }))
    expect((await postUpload({ ...app, key })).status).toBe(403)
  })

  test('after the number of uploads that a visitor may start in an hour', async () => {
    const { app, clock, key, one } = await startUploads(harness)
    for (let count = 0; count < 3; count++) await reserve(one)
    await expect(reserve(one)).rejects.toMatchObject(failure(429))
    await reserve(await beginSession(app, key))
    clock.advance(HOUR + 1)
    await reserve(one)
  })

  test('if it would exceed the quota of the parent key', async () => {
    const { app, one } = await startUploads(harness, uploadRules, { PARLEY_STORAGE_QUOTA_BYTES: '8000' })
    const second = await reserve(one)
    await upload(app, one)
    await expect(reserve(one)).rejects.toMatchObject(failure(413, { code: 'storage_quota_exceeded' }))
    const { status, text } = await put(app, second, zip)
    expect([status, text]).toEqual([413, expect.stringContaining('quota')])
  })

  test('in a message, if its content does not match its extension', async () => {
    const { app, one } = await startUploads(harness)
    const elf = Buffer.concat([Buffer.from('7f454c46020101', 'hex'), Buffer.alloc(200)])
    const reserved = await upload(app, one, 'logs.zip', elf)
    await expect(sendUpload(one, reserved)).rejects.toMatchObject(
      failure(400, { code: 'attachment_not_allowed', param: 'attachments[0]' }),
    )
  })

  test('in a message, if the agent no longer accepts it', async () => {
    const { app, one, agentId } = await startUploads(harness)
    const reserved = await upload(app, one)
    const headers = { 'Content-Type': 'application/yaml' }
    const body = uploadAgent({ ...uploadRules, maxBytes: 2_000 })
    expect((await app.call('PUT', `/v1/agents/${agentId}`, { body, headers })).status).toBe(200)
    await expect(sendUpload(one, reserved)).rejects.toMatchObject(failure(413, { param: 'attachments[0]' }))
  })

  test('in a message, while it is unfinished, and if a visitor of another agent or tenant sends it', async () => {
    const { app, one, key } = await startUploads(harness)
    const unfinished = await reserve(one)
    const notFound = failure(400, { code: 'upload_not_found', param: 'attachments[0]' })
    await expect(sendUpload(one, unfinished)).rejects.toMatchObject(notFound)
    const reserved = await upload(app, one)
    const other = await beginSession(app, key)
    await expect(sendUpload(other, reserved)).rejects.toMatchObject(notFound)
    const agent = await app.createAgent(uploadAgent(uploadRules))
    await expect(sendUpload(await beginSession(app, agent.agent_key), reserved)).rejects.toMatchObject(
      notFound,
    )
    const tenant = await createTenant(app)
    const foreign = await app.createAgent(uploadAgent(uploadRules), tenant)
    await expect(sendUpload(await beginSession(app, foreign.agent_key), reserved)).rejects.toMatchObject(
      notFound,
    )
    expect((await app.call('GET', `/v1/artifacts/${reserved.id}`, { key: tenant })).status).toBe(404)
    expect((await app.call('GET', `/artifacts/${reserved.id}`, { key })).status).toBe(403)
  })
})

describe("the token of a visitor's upload", () => {
  test('allows only the file that was announced', async () => {
    const { app, one } = await startUploads(harness)
    const reserved = await reserve(one)
    const longer = Buffer.concat([zip, zip])
    expect((await put(app, reserved, longer)).status).toBe(400)
    const deferred = await postUpload({ ...app, key: reserved.token }, { size: 'deferred' })
    expect(deferred.status).toBe(400)
    const metadata = { artifactId: randomUUID(), relatedTo: reserved.id }
    expect((await put(app, reserved, zip, { metadata })).status).toBe(403)
    expect((await put(app, reserved, zip, { metadata: { artifactId: randomUUID() } })).status).toBe(403)
    expect((await put(app, reserved, zip, { metadata: { kind: 'video' } })).status).toBe(400)
    expect((await put(app, reserved, zip, { metadata: { filename: 'other.exe' } })).status).toBe(201)
    expect((await readState(app, reserved)).body.filename).toBe('logs.zip')
  })

  test('does not read files, and does not write to other uploads', async () => {
    const { app, one, key } = await startUploads(harness)
    const { id, token } = await upload(app, one)
    const other = await reserve(await beginSession(app, key))
    const begun = await createUpload({ ...app, key: other.token }, { size: zip.length })
    const calls = await Promise.all([
      app.call('GET', `/artifacts/${id}`, { key: token }),
      app.call('GET', `/artifacts/${id}/status`, { key: token }),
      app.call('DELETE', `/artifacts/${other.id}`, { key: token }),
      callUpload({ ...app, key: token }, 'HEAD', begun.location),
      patchUpload({ ...app, key: token }, begun, 0, zip),
    ])
    expect(calls.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403])
    expect((await app.call('GET', '/v1/artifacts', { key: token })).status).toBe(401)
  })

  test('expires after six hours', async () => {
    const { app, clock, one } = await startUploads(harness)
    const reserved = await reserve(one)
    clock.advance(6 * HOUR)
    expect((await put(app, reserved, zip)).status).toBe(401)
  })

  test('cannot start the upload again after the file was deleted', async () => {
    const { app, one } = await startUploads(harness)
    const reserved = await upload(app, one)
    await app.call('DELETE', `/artifacts/${reserved.id}`, { key: reserved.token })
    expect((await put(app, reserved, zip)).status).toBe(404)
  })
})

describe('the upload rules', () => {
  test("are included in the agent's description", async () => {
    const { app, key } = await startUploads(harness, { ...uploadRules, types: ['pdf', 'archive'] })
    const { body } = await app.call('GET', '/v1/agents/me', { key })
    expect(body.attachments.uploads).toEqual({
      extensions: ['pdf', 'zip', 'gz', 'tgz', 'tar', '7z', 'rar', 'bz2', 'xz', 'zst'],
      max_bytes: 10_000,
    })
  })

  test.each([
    [{ types: ['zip'] }, 'attachments.uploads.types[0]: must be one of image, pdf'],
    [{ types: ['pdf', 'pdf'] }, 'attachments.uploads.types: must not repeat a type'],
    [{ maxBytes: 10 }, 'attachments.uploads.maxBytes: must be 1024 to 5368709120'],
    [{ perHour: 0 }, 'attachments.uploads.perHour: must be 1 to 1000'],
    [{ perDay: 1 }, "attachments.uploads: has an unknown key 'perDay'"],
  ])('are checked: %j', async (rules, problem) => {
    const { app } = await startUploads(harness)
    const headers = { 'Content-Type': 'application/yaml' }
    const { status, text } = await app.call('POST', '/v1/agents', { body: uploadAgent(rules), headers })
    expect([status, text]).toEqual([400, expect.stringContaining(problem)])
  })
})
