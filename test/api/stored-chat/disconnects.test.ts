/** Tests how long a stored chat continues after its client has disconnected. */
import { describe, expect, test } from 'vitest'
import { startChatHarness } from '../../support/chat-harness.ts'
import {
  listItems,
  listTurns,
  openStream,
  resume,
  sendChat,
  splitStream,
  storingAgent,
} from '../../support/stored-chats.ts'

const harness = await startChatHarness()
const SLOW = '{{up:chunks 20}}{{up:delay 20}}'
const ENDLESS = '{{up:hang-after 3}}{{up:usage never}}'

async function startStoring(reconnectSeconds: string, onDisconnect: 'cancel' | 'continue') {
  const app = await harness.start({ PARLEY_RECONNECT_SECONDS: reconnectSeconds })
  const { agent_key: key } = await app.createAgent(storingAgent({ onDisconnect }))
  return { app, key }
}

/** Reads two events of a stream, then disconnects; returns the events. */
async function leaveStream(app: Awaited<ReturnType<typeof startStoring>>['app'], key: string, text: string) {
  const stream = await openStream(app, text, { key })
  const events = splitStream(await stream.readEvents(2)).slice(0, 2)
  stream.disconnect()
  return events
}

/** Waits until the provider's only chat request has ended; returns the reason. */
async function endOfChat() {
  const [chat] = await harness.listChats()
  return (await harness.upstream.waitForEnd(chat?.id ?? -1)).endedBy
}

async function endedTurn(app: Awaited<ReturnType<typeof startStoring>>['app']) {
  await expect.poll(async () => (await listTurns(app))[0]?.status).not.toBe('in_progress')
  return (await listTurns(app))[0]
}

describe('a stored stream whose client disconnects', () => {
  test('is aborted after PARLEY_RECONNECT_SECONDS with `onDisconnect: cancel`', async () => {
    const { app, key } = await startStoring('0', 'cancel')
    await leaveStream(app, key, ENDLESS)
    expect(await endOfChat()).toBe('client')
    expect(await endedTurn(app)).toMatchObject({ status: 'incomplete', reason: 'interrupted' })
  })

  test('keeps the text that the model has sent when it is aborted', async () => {
    const { app, key } = await startStoring('0', 'cancel')
    const events = await leaveStream(app, key, ENDLESS)
    await endedTurn(app)
    const { text } = await resume(app, key, events[0]?.id as string)
    expect(text.startsWith(events[1]?.text as string)).toBe(true)
    expect((await listItems(app)).at(-1)).toMatchObject({
      role: 'assistant',
      status: 'incomplete',
      content: [{ type: 'output_text', text: 'Upstream heard:' }],
    })
  })

  test('returns an error event to a client that reconnects too late', async () => {
    const { app, key } = await startStoring('0', 'cancel')
    const events = await leaveStream(app, key, ENDLESS)
    await endedTurn(app)
    const { text } = await resume(app, key, events[0]?.id as string)
    const last = splitStream(text).at(-1)
    expect(last?.id).toBeUndefined()
    expect(last?.text).toContain('"code":"stream_interrupted"')
  })

  test('continues if the client reconnects in time', async () => {
    const { app, key } = await startStoring('60', 'cancel')
    const events = await leaveStream(app, key, SLOW)
    const { text } = await resume(app, key, events[1]?.id as string)
    expect(splitStream(text).map(({ id }) => id?.split('.')[1])).toEqual([
      ...Array.from({ length: splitStream(text).length - 1 }, (_, index) => String(index + 2)),
      undefined,
    ])
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(await endOfChat()).toBe('answer')
    expect(await harness.listChats()).toHaveLength(1)
  })

  test('is not aborted while another client reads it', async () => {
    const { app, key } = await startStoring('0', 'cancel')
    const first = await openStream(app, SLOW, { key })
    const [event] = splitStream(await first.readEvents(1))
    const second = await openStream(app, '', { key, headers: { 'Last-Event-ID': event?.id as string } })
    await second.readEvents(1)
    first.disconnect()
    expect((await second.readAll()).endsWith('data: [DONE]\n\n')).toBe(true)
    expect(await endOfChat()).toBe('answer')
  })

  test('continues to its end with `onDisconnect: continue`', async () => {
    const { app, key } = await startStoring('0', 'continue')
    const events = await leaveStream(app, key, SLOW)
    expect(await endOfChat()).toBe('answer')
    expect(await endedTurn(app)).toMatchObject({ status: 'completed' })
    const { text } = await resume(app, key, events[1]?.id as string)
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  })
})

describe('a stored stream whose client disconnects before the first event', () => {
  test.each(['cancel', 'continue'] as const)('follows `onDisconnect: %s`', async (onDisconnect) => {
    const { app, key } = await startStoring('0', onDisconnect)
    const controller = new AbortController()
    const text = onDisconnect === 'cancel' ? '{{up:hang}}' : 'hello {{up:slow-head 300}}'
    const answer = sendChat(app, text, { key, signal: controller.signal })
    const aborted = expect(answer).rejects.toThrow(/abort/i)
    await harness.upstream.waitForPath('/v1/chat/completions')
    controller.abort()
    await aborted
    expect(await endOfChat()).toBe(onDisconnect === 'cancel' ? 'client' : 'answer')
    expect(await endedTurn(app)).toMatchObject({
      status: onDisconnect === 'cancel' ? 'incomplete' : 'completed',
    })
  })
})

describe('a stored completion that is not streamed', () => {
  test('is aborted with `onDisconnect: cancel` if its client disconnects', async () => {
    const { app, key } = await startStoring('0', 'cancel')
    const controller = new AbortController()
    const answer = sendChat(app, '{{up:hang}}', { key, more: { stream: false }, signal: controller.signal })
    const aborted = expect(answer).rejects.toThrow(/abort/i)
    await harness.upstream.waitForRequest('hang')
    controller.abort()
    await aborted
    expect(await endOfChat()).toBe('client')
    expect(await endedTurn(app)).toMatchObject({ status: 'incomplete' })
  })

  test('is stored with `onDisconnect: continue` if its client disconnects', async () => {
    const { app, key } = await startStoring('0', 'continue')
    const controller = new AbortController()
    const text = 'hello {{up:slow-head 200}}'
    const answer = sendChat(app, text, { key, more: { stream: false }, signal: controller.signal })
    const aborted = expect(answer).rejects.toThrow(/abort/i)
    await harness.upstream.waitForRequest('slow-head')
    controller.abort()
    await aborted
    expect(await endOfChat()).toBe('answer')
    expect(await endedTurn(app)).toMatchObject({ status: 'completed' })
    expect(JSON.stringify(await listItems(app))).toContain('Upstream heard: hello')
  })
})
