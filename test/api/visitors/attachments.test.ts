/** Tests the attachments that an agent accepts, over the chat API and in visitors' conversations. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { beginSession, sayAndWait, type TestVisitor } from '../../support/visitors.ts'

const harness = await startChatHarness()

const pngStart = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
const bytesOf = (start: Buffer, size: number) => Buffer.concat([start, Buffer.alloc(size - start.length, 7)])
const toUrl = (bytes: Buffer, type: string) => `data:${type};base64,${bytes.toString('base64')}`
const png = (size = 64) => toUrl(bytesOf(pngStart, size), 'image/png')
const pdf = toUrl(Buffer.from('%PDF-1.7\nhello'), 'application/pdf')
const image = (url: string) => ({ type: 'image_url' as const, image_url: { url } })
const file = (file_data: string) => ({ type: 'file' as const, file: { filename: 'a.pdf', file_data } })
const note = (text: string) => ({ type: 'text' as const, text: `[Attached file: note.txt]\n${text}` })

async function startAgent(attachments: object | undefined, env: Readonly<Record<string, string>> = {}) {
  const app = await harness.start(env, { clock: systemClock })
  const agent = await app.createAgent(
    JSON.stringify({
      name: 'Reader',
      instructions: 'Answer.',
      conversations: { keep: '30d' },
      ...(attachments !== undefined && { attachments }),
    }),
  )
  return { app, key: agent.agent_key }
}

function ask(app: TestApp, key: string, content: object[], earlier: object[] = []): Promise<Response> {
  return fetch(`${app.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ messages: [...earlier, { role: 'user', content }] }),
  })
}

async function lastMessages(): Promise<{ content: unknown }[]> {
  const { body } = (await harness.listChats()).at(-1) ?? {}
  return (body as { messages: { content: unknown }[] }).messages
}

const all = { types: ['image', 'pdf', 'text'], maxCount: 2, maxBytes: 2048 }

describe('an agent with attachments', () => {
  test('passes images, PDF files and text files to the model', async () => {
    const { app, key } = await startAgent({ ...all, maxCount: 3 })
    const parts = [{ type: 'text', text: 'Look.' }, image(png()), file(pdf), note('hi')]
    expect((await ask(app, key, parts)).status).toBe(200)
    expect((await lastMessages()).at(-1)?.content).toEqual(parts)
  })

  test.each([
    ['a type that the agent does not list', { types: ['image'] }, file(pdf), 400, 'PDF files'],
    ['an image that is larger than the limit', all, image(png(2049)), 413, 'at most 2048 bytes (got 2049)'],
    ['text that is larger than the limit', all, note('x'.repeat(2048)), 413, 'at most 2048 bytes'],
    ['an image from a web address', all, image('https://example.com/a.png'), 400, 'base64 data URL'],
    [
      'HTML that is declared as an image',
      all,
      image(toUrl(Buffer.from('<html>'), 'image/png')),
      400,
      'matches its media type',
    ],
    [
      'an SVG image',
      all,
      image(toUrl(Buffer.from('<svg/>'), 'image/svg+xml')),
      400,
      'PNG, JPEG, WebP or GIF',
    ],
    [
      'a PNG that is declared as a JPEG',
      all,
      image(png().replace('png', 'jpeg')),
      400,
      'matches its media type',
    ],
    ['invalid base64', all, image(`${png()}!*&=`), 400, 'base64 data URL'],
    [
      'an image that is declared as a PDF',
      all,
      file(png().replace('image/png', 'application/pdf')),
      400,
      'contain a PDF',
    ],
    ['a text file with control characters', all, note('a\u0000b'), 400, 'control characters'],
  ])('rejects %s', async (_, rules, part, status, words) => {
    const { app, key } = await startAgent(rules)
    const response = await ask(app, key, [{ type: 'text', text: 'Look.' }, part])
    expect(response.status).toBe(status)
    const { error } = (await response.json()) as { error: { param: string; message: string } }
    expect(error.param).toBe('messages[0].content[1]')
    expect(error.message).toContain(words)
    expect(await harness.listChats()).toEqual([])
  })

  test('rejects a message with too many attachments', async () => {
    const { app, key } = await startAgent(all)
    const response = await ask(app, key, [image(png()), image(png()), image(png())])
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      error: { param: 'messages[0].content[2]', message: expect.stringContaining('at most 2 attachments') },
    })
  })

  test('replaces attachments in earlier messages that it no longer accepts', async () => {
    const { app, key } = await startAgent({ types: ['text'] })
    const earlier = [
      { role: 'user', content: [image(png())] },
      { role: 'assistant', content: 'Nice.' },
    ]
    expect((await ask(app, key, [{ type: 'text', text: 'And?' }], earlier)).status).toBe(200)
    const messages = await lastMessages()
    expect(messages[1]?.content).toEqual([{ type: 'text', text: expect.stringContaining('cannot be shown') }])
  })

  test('rejects images if the provider lists its model as text-only', async () => {
    await harness.upstream.script(
      '/v1/models',
      `{{up:body ${JSON.stringify({ data: [{ id: 'up-chat', architecture: { input_modalities: ['text'] } }] })}}}`,
    )
    const { app, key } = await startAgent({ types: ['image', 'text'] })
    const response = await ask(app, key, [image(png())])
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      error: {
        code: 'attachment_not_supported',
        param: 'messages[0].content[0]',
        message: "messages[0].content[0]: the model 'up-chat' does not accept images",
      },
    })
    const self = await fetch(`${app.url}/v1/agents/me`, { headers: { Authorization: `Bearer ${key}` } })
    expect(await self.json()).toMatchObject({
      attachments: { types: ['text'], max_count: 4, max_bytes: 1_048_576 },
    })
  })

  test('accepts larger requests with its key, up to the size of the attachments that it allows', async () => {
    const env = { PARLEY_MAX_BODY_BYTES_AGENT: '4096' }
    const { app, key } = await startAgent({ maxCount: 1, maxBytes: 30_000 }, env)
    expect((await ask(app, key, [image(png(30_000))])).status).toBe(200)
    expect((await ask(app, key, [image(png(60_000))])).status).toBe(413)
    const plain = await startAgent(undefined, env)
    expect((await ask(plain.app, plain.key, [image(png(30_000))])).status).toBe(413)
  })
})

describe("a visitor's attachments", () => {
  const send = ({ visitor }: TestVisitor, attachments: object[], text = 'Look.') =>
    visitor.send.mutate({ client_id: randomUUID(), text, attachments: attachments as never })

  test('are sent to the model with their own message and with the next one, and can be read again', async () => {
    const { app, key } = await startAgent({ types: ['image', 'text'], maxBytes: 200_000 })
    const one = await beginSession(app, key)
    const url = png(100_000)
    const { sent } = await sayAndWait(one, 'Look.', { attachments: [image(url), note('hi')] })
    expect(sent.item).toMatchObject({
      text: 'Look.',
      attachments: [
        { type: 'image', name: null, part: 1 },
        { type: 'text', name: 'note.txt', part: 2 },
      ],
    })
    await sayAndWait(one, 'And now?', { conversation: sent.conversation.id })
    const messages = await lastMessages()
    expect(messages[1]?.content).toMatchObject([{ text: 'Look.' }, { image_url: { url } }, note('hi')])
    const at = { conversation: sent.conversation.id, item: sent.item.id }
    expect(await one.visitor.attachment.query({ ...at, part: 1 })).toEqual({ data: url })
    const opened = await one.visitor.open.query({ conversation: at.conversation })
    expect(opened.items[0]).toEqual(sent.item)
  })

  test('cannot be read by another visitor', async () => {
    const { app, key } = await startAgent({})
    const one = await beginSession(app, key)
    const { sent } = await sayAndWait(one, 'Mine.', { attachments: [image(png())] })
    const other = await beginSession(app, key)
    const at = { conversation: sent.conversation.id, item: sent.item.id }
    await expect(other.visitor.attachment.query({ ...at, part: 1 })).rejects.toMatchObject({
      data: { httpStatus: 404 },
    })
    await expect(one.visitor.attachment.query({ ...at, part: 7 })).rejects.toMatchObject({
      data: { httpStatus: 404, param: 'part' },
    })
  })

  test('can be sent without text', async () => {
    const { app, key } = await startAgent({})
    const one = await beginSession(app, key)
    const sent = await send(one, [image(png())], '')
    expect(sent.item).toMatchObject({ text: '', attachments: [{ type: 'image' }] })
    await expect(send(one, [], '')).rejects.toMatchObject({ data: { httpStatus: 400, param: 'text' } })
  })

  test.each([
    ['the agent allows no attachments', undefined, [image(png())], 400, 'attachments[0]'],
    ['there are too many', { maxCount: 1 }, [image(png()), image(png())], 400, 'attachments[1]'],
    ['one exceeds the size limit', { maxBytes: 1024 }, [image(png(1025))], 413, 'attachments[0]'],
  ])('are rejected if %s', async (_, rules, attachments, httpStatus, param) => {
    const { app, key } = await startAgent(rules)
    const one = await beginSession(app, key)
    await expect(send(one, attachments)).rejects.toMatchObject({ data: { httpStatus, param } })
    const { data } = await one.visitor.conversations.query({})
    expect(data).toEqual([])
  })
})
