/**
 * Tests that images, audio, files and long tool results are stored as blobs, and deleted with their items.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createFileSweeper } from '../../../src/files/files.ts'
import type { HostTool } from '../../../src/server/service.ts'
import { startAppOnDisk, type TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { maintain, STORING } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { makeFolder } from '../../support/process.ts'
import { S3Server } from '../../support/s3-server.ts'
import { findText, listItems, openConversations } from '../../support/stored-chats.ts'
import { tool, toolCallResponse } from '../../support/tools.ts'

const harness = await startChatHarness()
const DAY = 86_400
const KIB_32 = 32 * 1024

/** A data URL of an image of random bytes, and a part of it to search for. */
function createImage(bytes = 40_000) {
  const url = `data:image/png;base64,${randomBytes(bytes).toString('base64')}`
  return { url, part: url.slice(1_000, 1_060) }
}

async function start(env: Readonly<Record<string, string>> = {}, tools: Record<string, HostTool> = {}) {
  const clock = createFakeClock(Math.floor(Date.now() / 1000))
  const dataDir = join(await makeFolder(), 'data')
  const app = await harness.start({ PARLEY_DATA_DIR: dataDir, ...env }, { clock, tools })
  const yaml = `${STORING.replace('30d', '30d, history: { turns: 40, tokens: 1000000 }')}
tools: [${Object.keys(tools).join(', ')}]
`
  const { agent_id: id, agent_key: key } = await app.createAgent(yaml)
  const model = `agent/${id}`
  const respond = async (content: unknown, more: object = {}) => {
    const body = { model, input: [{ role: 'user', content }], ...more }
    const answer = await app.call('POST', '/v1/responses', { body })
    expect(answer.status, answer.text).toBe(200)
    return answer.body
  }
  return { app, clock, dataDir, model, key, id, respond }
}

const imageOf = ({ url }: { url: string }) => [{ type: 'input_image', image_url: url, detail: 'auto' }]

async function listBlobs(dataDir: string): Promise<string[]> {
  return (await readdir(join(dataDir, 'files'))).filter((name) => !name.startsWith('.') && name.length === 36)
}

async function createConversation(app: TestApp, items: readonly object[] = []): Promise<string> {
  return (await app.call('POST', '/v1/conversations', { body: { items } })).body.id
}

describe('data in an item', () => {
  test('is stored as a blob if it exceeds 32 KiB, and returned byte for byte to clients and to the model', async () => {
    const { app, dataDir, respond } = await start()
    const image = createImage()
    const conversation = await createConversation(app)
    const first = await respond(imageOf(image), { conversation })
    expect(JSON.stringify(await listItems(app))).not.toContain(image.part)
    const blobs = await listBlobs(dataDir)
    expect(await findText(app, dataDir, image.part)).toEqual(blobs)
    expect(blobs).toHaveLength(1)

    const paths = [
      `/v1/responses/${first.id}/input_items`,
      `/v1/conversations/${conversation}/items?order=asc`,
    ]
    for (const path of paths) {
      const { body } = await app.call('GET', path)
      expect(body.data[0].content[0].image_url).toBe(image.url)
      const one = await app.call('GET', `/v1/conversations/${conversation}/items/${body.data[0].id}`)
      expect(one.body.content[0].image_url).toBe(image.url)
    }
    await respond('And now?', { conversation })
    const [, second] = await harness.listChats()
    expect(JSON.stringify(second?.body)).toContain(image.url)
    const [item] = (await app.call('GET', paths[1] as string)).body.data
    await respond('Again?', { input: [{ type: 'item_reference', id: item.id }] })
    expect(JSON.stringify((await harness.listChats())[2]?.body)).toContain(image.url)
  })

  test.each([
    ['image', { type: 'image_url', image_url: { url: 'URL' } }],
    ['audio', { type: 'input_audio', input_audio: { data: 'URL', format: 'wav' } }],
    ['file', { type: 'file', file: { filename: 'a.pdf', file_data: 'URL' } }],
  ])('is stored as a blob if a chat completion contains it (%s)', async (_what, part) => {
    const { app, dataDir, key } = await start()
    const image = createImage()
    const content = [JSON.parse(JSON.stringify(part).replace('URL', image.url))]
    const body = { model: 'up-chat', messages: [{ role: 'user', content }] }
    expect((await app.call('POST', '/v1/chat/completions', { key, body })).status).toBe(200)
    expect(await findText(app, dataDir, image.part)).toEqual(await listBlobs(dataDir))
    const [conversation] = (await app.call('GET', '/v1/conversations')).body.data
    const { text } = await app.call('GET', `/v1/conversations/${conversation.id}/items`)
    expect(text).toContain(image.url)
  })

  test('counts toward PARLEY_CONVERSATIONS_MAX_BYTES', async () => {
    const { app, clock } = await start({ PARLEY_CONVERSATIONS_MAX_BYTES: '50000' })
    const items = [{ type: 'message', role: 'user', content: imageOf(createImage()) }]
    await createConversation(app, items)
    clock.advance(11)
    const { status, body } = await app.call('POST', '/v1/conversations', { body: { items } })
    expect([status, body.error.code]).toEqual([507, 'storage_full'])
  })

  test('is not deleted as an orphan, unless the server stopped before it stored the item', async () => {
    const { app, clock, dataDir, respond } = await start()
    await respond(imageOf(createImage()))
    const stored = await listBlobs(dataDir)
    const staged = await app.service.deps.fileBlobs.stage(
      (async function* () {
        yield Buffer.from('orphan')
      })(),
    )
    await staged.commit()
    clock.advance(2 * 3_600)
    await createFileSweeper(app.service.deps).run()
    expect(await listBlobs(dataDir)).toEqual(stored)
  })

  test('is stored inline if it has at most 32 KiB', async () => {
    const { app, dataDir, respond } = await start()
    const url = `data:text/plain,${'a'.repeat(KIB_32 - 16)}`
    expect(url).toHaveLength(KIB_32)
    await respond(imageOf({ url }))
    await respond('text '.repeat(KIB_32))
    expect(await listBlobs(dataDir)).toEqual([])
    expect(JSON.stringify(await listItems(app))).toContain(url)
  })

  test('is not revealed by a text that looks like the name of a blob', async () => {
    const { app, respond } = await start()
    await respond(imageOf(createImage()))
    const db = await openConversations(app)
    const { name } = await db.selectFrom('item_data').select('name').executeTakeFirstOrThrow()
    for (const forged of [`parley-data:${name}`, `parley-data:${randomUUID()}`]) {
      const id = await createConversation(app, [
        { type: 'message', role: 'user', content: imageOf({ url: forged }) },
      ])
      const { body } = await app.call('GET', `/v1/conversations/${id}/items`)
      expect(body.data[0].content[0].image_url).toBe(forged)
    }
  })

  test('is deleted if the turn is rejected', async () => {
    const { app, dataDir, model } = await start()
    const conversation = await createConversation(app)
    const db = await openConversations(app)
    await db.updateTable('conversations').set({ turns: 1_000 }).execute()
    const input = [{ role: 'user', content: imageOf(createImage()) }]
    const { status, body } = await app.call('POST', '/v1/responses', { body: { model, conversation, input } })
    expect([status, body.error.code]).toEqual([409, 'conversation_full'])
    expect(await listBlobs(dataDir)).toEqual([])
  })
})

test('large item data is stored in the bucket and deleted with its conversation', async () => {
  const server = await S3Server.start()
  const app = await startAppOnDisk(server.environment)
  const image = createImage()
  const id = await createConversation(app, [{ type: 'message', role: 'user', content: imageOf(image) }])
  expect(server.listBlobs()).toHaveLength(1)
  const { body } = await app.call('GET', `/v1/conversations/${id}/items`)
  expect(body.data[0].content[0].image_url).toBe(image.url)
  expect((await app.call('DELETE', `/v1/conversations/${id}`)).status).toBe(200)
  expect(server.listBlobs()).toEqual([])
})

describe('a tool result of more than 32 KiB', () => {
  const photo = randomBytes(40_000).toString('base64')
  const result = JSON.stringify({ mimeType: 'image/png', data: photo, note: 'é "quoted"' })
  const part = photo.slice(1_000, 1_060)

  /** Makes the model answer without repeating its input. */
  const answerBriefly = () => {
    const choice = { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Nice.' } }
    return harness.answerWith({ id: 'a', created: 1, model: 'up-chat', choices: [choice] })
  }
  const camera = tool(async () => {
    await answerBriefly()
    return result
  })

  async function startWithCamera() {
    const started = await start({}, { camera })
    const { app, dataDir, respond } = started
    const conversation = await createConversation(app)
    await harness.answerWith(toolCallResponse('whole', [{ name: 'camera', args: '{}' }]), 1)
    const response = await respond('Take a photo.', { conversation })
    const findOutput = async () => {
      const { body } = await app.call('GET', `/v1/conversations/${conversation}/items?order=asc`)
      return body.data.find(({ type }: { type: string }) => type === 'function_call_output')
    }
    const find = async () => [...(await findText(app, dataDir, part)), ...(await listBlobs(dataDir))]
    return { ...started, conversation, response, findOutput, find }
  }

  test('from a server tool is stored only as a blob, and returned to clients and to the model', async () => {
    const { app, dataDir, conversation, respond, findOutput } = await startWithCamera()
    const blobs = await listBlobs(dataDir)
    expect(blobs).toHaveLength(1)
    expect(await findText(app, dataDir, part)).toEqual(blobs)
    const output = await findOutput()
    expect(output.output).toBe(result)
    const db = await openConversations(app)
    const row = await db.selectFrom('items').select('bytes').where('id', '=', output.id).executeTakeFirst()
    const { parley: _, ...body } = output
    expect(row?.bytes).toBe(Buffer.byteLength(JSON.stringify(body)))
    await respond('And now?', { conversation })
    expect(JSON.stringify((await harness.listChats()).at(-1)?.body)).toContain(JSON.stringify(result))
  })

  test('from a server tool is not revealed by a later result that names its blob', async () => {
    const { app, dataDir, conversation, findOutput } = await startWithCamera()
    const [name] = await listBlobs(dataDir)
    const forged = { type: 'function_call_output', call_id: 'call_1', output: `parley-data:${name}` }
    const added = await app.call('POST', `/v1/conversations/${conversation}/items`, {
      body: { items: [forged] },
    })
    const path = `/v1/conversations/${conversation}/items/${added.body.data[0].id}`
    expect((await app.call('GET', path)).body.output).toBe(forged.output)
    expect((await findOutput()).output).toBe(result)
  })

  test.each([
    [
      'the item',
      async (app: TestApp, conversation: string, itemId: string) =>
        app.call('DELETE', `/v1/conversations/${conversation}/items/${itemId}`),
    ],
    [
      'the response',
      async (app: TestApp, _conversation: string, _itemId: string, responseId: string) =>
        app.call('DELETE', `/v1/responses/${responseId}`),
    ],
    [
      'the conversation',
      async (app: TestApp, conversation: string) => app.call('DELETE', `/v1/conversations/${conversation}`),
    ],
  ])('from a server tool leaves no byte after %s is deleted', async (_what, remove) => {
    const { app, conversation, response, findOutput, find } = await startWithCamera()
    expect(await find()).not.toEqual([])
    expect((await remove(app, conversation, (await findOutput()).id, response.id)).status).toBe(200)
    expect(await find()).toEqual([])
  })

  test('from a server tool leaves no blob if another process has ended the turn in the meantime', async () => {
    const { app, dataDir, respond } = await start(
      {},
      {
        camera: tool(async () => {
          const db = await openConversations(app)
          const ended = { owner: 'another', status: 'incomplete', reason: 'interrupted' } as const
          await db.updateTable('turns').set(ended).execute()
          return result
        }),
      },
    )
    let stored = 0
    const { fileBlobs } = app.service.deps
    const { stage } = fileBlobs
    fileBlobs.stage = (...words) => {
      stored += 1
      return stage.apply(fileBlobs, words)
    }
    await harness.answerWith(toolCallResponse('whole', [{ name: 'camera', args: '{}' }]), 1)
    await respond('Take a photo.')
    expect(stored).toBe(1)
    await expect.poll(() => listBlobs(dataDir)).toEqual([])
    expect(await findText(app, dataDir, part)).toEqual([])
  })

  test('from a server tool is stored in its row if no blob can be stored', async () => {
    const { app, dataDir, respond } = await start({}, { camera })
    app.service.deps.fileBlobs.stage = () => Promise.reject(new Error('the bucket is unavailable'))
    await harness.answerWith(toolCallResponse('whole', [{ name: 'camera', args: '{}' }]), 1)
    await respond('Take a photo.')
    expect(await listBlobs(dataDir)).toEqual([])
    expect(await listItems(app)).toContainEqual(expect.objectContaining({ output: result }))
  })

  test.each([
    ['text', result],
    ['an image', [{ type: 'input_image', image_url: `data:image/png;base64,${photo}`, detail: 'auto' }]],
    ['a file', [{ type: 'input_file', filename: 'a.pdf', file_data: photo }]],
  ])('sent by a client as %s is stored as a blob until its response is deleted', async (_what, output) => {
    const { app, dataDir, respond } = await start()
    const input = [
      { role: 'user', content: 'Take a photo.' },
      { type: 'function_call', call_id: 'call_1', name: 'camera', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output },
    ]
    await answerBriefly()
    const { id } = await respond('', { input })
    const blobs = await listBlobs(dataDir)
    expect(blobs).toHaveLength(1)
    expect(await findText(app, dataDir, part)).toEqual(blobs)
    const { body } = await app.call('GET', `/v1/responses/${id}/input_items?order=asc`)
    expect(body.data.at(-1).output).toEqual(output)
    expect((await app.call('DELETE', `/v1/responses/${id}`)).status).toBe(200)
    expect([...(await findText(app, dataDir, part)), ...(await listBlobs(dataDir))]).toEqual([])
  })
})

describe("no byte of an item's data remains", () => {
  async function startWithImage() {
    const started = await start()
    const { app, dataDir, respond } = started
    const image = createImage()
    const conversation = await createConversation(app)
    const response = await respond(imageOf(image), { conversation })
    expect(await findText(app, dataDir, image.part)).toHaveLength(1)
    const find = async () => [...(await findText(app, dataDir, image.part)), ...(await listBlobs(dataDir))]
    return { ...started, conversation, response, find }
  }

  test('after the item is deleted', async () => {
    const { app, conversation, find } = await startWithImage()
    const { body } = await app.call('GET', `/v1/conversations/${conversation}/items?order=asc`)
    await app.call('DELETE', `/v1/conversations/${conversation}/items/${body.data[0].id}`)
    expect(await find()).toEqual([])
  })

  test('after the response is deleted', async () => {
    const { app, response, find } = await startWithImage()
    await app.call('DELETE', `/v1/responses/${response.id}`)
    expect(await find()).toEqual([])
  })

  test('after the conversation is deleted', async () => {
    const { app, conversation, find } = await startWithImage()
    await app.call('DELETE', `/v1/conversations/${conversation}`)
    expect(await find()).toEqual([])
    const db = await openConversations(app)
    expect(await db.selectFrom('item_data').selectAll().execute()).toEqual([])
  })

  test('after the conversation has expired', async () => {
    const { app, clock, find } = await startWithImage()
    clock.advance(31 * DAY)
    await maintain(app)
    expect(await find()).toEqual([])
  })

  test('after the agent is deleted', async () => {
    const { app, id, find } = await startWithImage()
    expect((await app.call('DELETE', `/v1/agents/${id}`)).status).toBeLessThan(300)
    expect(await find()).toEqual([])
  })

  test('after maintenance, if the blob could not be deleted at first', async () => {
    const { app, conversation, find } = await startWithImage()
    const { fileBlobs } = app.service.deps
    const { delete: deleteBlob } = fileBlobs
    fileBlobs.delete = () => Promise.reject(new Error('the bucket is unavailable'))
    expect((await app.call('DELETE', `/v1/conversations/${conversation}`)).status).toBe(200)
    expect(await find()).not.toEqual([])
    fileBlobs.delete = deleteBlob
    await maintain(app)
    expect(await find()).toEqual([])
  })
})
