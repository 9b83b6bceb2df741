/** Tests takeovers of conversations while a proxy cuts connections or the server is killed. */
import { randomUUID } from 'node:crypto'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { CuttingProxy } from '../support/cutting-proxy.ts'
import { isMode } from '../support/handover.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'
import { shareUpstream } from '../support/start-upstream.ts'
import { createStoringAgent, dataOf, readStream, storingEnv } from '../support/stored-turns.ts'
import { asVisitor, type FeedEvent, followUntil, say } from '../support/visitors.ts'

vi.setConfig({ testTimeout: 120_000 })

const upstream = await shareUpstream()
const MESSAGES = 50
const START = '0.0.e'

async function startVisit() {
  await upstream.clear()
  const folder = await makeFolder()
  const env = storingEnv(upstream)
  const server = await startServer({ folder, env })
  const parentKey = server.key as string
  const conversations = { keep: '30d', onDisconnect: 'continue', handover: { timeout: '1d' } }
  const { key } = await createStoringAgent(server.url, parentKey, { conversations })
  const { token } = await asVisitor(server, key).session.mutate({})
  const visit = (url: string) => ({ visitor: asVisitor({ url }, key, token) })
  return { server, parentKey, visit, restart: () => startServer({ folder, env }) }
}

const listChats = async () =>
  (await upstream.listRequests()).filter(({ path }) => path === '/v1/chat/completions')

/** Repeats an action until it completes without a cut connection. */
async function persist<Result>(action: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await action()
    } catch (error) {
      if ((error as { data?: unknown }).data != null) throw error
    }
  }
}

/** Reads a visitor's feed across cut connections. */
async function readAsVisitor(
  one: ReturnType<Awaited<ReturnType<typeof startVisit>>['visit']>,
  conversation: string,
  isLast: (event: FeedEvent) => boolean,
): Promise<FeedEvent[]> {
  const events: FeedEvent[] = []
  while (!events.some(isLast)) {
    const cursor = events.at(-1)?.id ?? START
    await followUntil(one, { conversation, cursor }, (event) => {
      events.push(event)
      return isLast(event)
    }).catch(() => {})
  }
  return events
}

/** Reads an owner's feed across cut connections. */
async function readAsOwner(url: string, key: string, conversation: string): Promise<FeedEvent[]> {
  const path = `/v1/conversations/${conversation}/events`
  const events: FeedEvent[] = []
  while (!events.some(isMode('model'))) {
    const headers = { 'Last-Event-ID': events.at(-1)?.id ?? START }
    const { text } = await readStream(url, { method: 'GET', path, key, headers }, (so, stop) => {
      if (so.includes('"mode":"model"')) stop()
    })
    for (const event of text.split('\n\n').slice(0, -1)) {
      const id = /^id: (.*)$/m.exec(event)?.[1]
      const name = /^event: (.*)$/m.exec(event)?.[1]
      if (id !== undefined) events.push({ id, event: name, data: dataOf(event) } as FeedEvent)
    }
  }
  return events
}

const messagesOf = (events: readonly FeedEvent[], author: string) =>
  events.flatMap((event) =>
    event.event === 'conversation.item' && event.data.item.author === author ? [event.data.item.text] : [],
  )

describe('after a takeover mid-answer, through a proxy that drops connections', () => {
  test("50 messages from each side arrive exactly once and in order, and the model is not called before the visitor's first message after the handback", async () => {
    const { server, parentKey, visit } = await startVisit()
    const proxy = await CuttingProxy.open(server.url)
    onTestFinished(() => proxy.close())
    const one = visit(proxy.url)
    const { conversation, cursor } = await say(visit(server.url), 'Explain. {{up:hang-after 4}}')
    const id = conversation.id
    await followUntil(visit(server.url), { conversation: id, cursor }, (_, { length }) => length === 3)
    const asVisitorReads = readAsVisitor(one, id, isMode('model'))
    const asOwnerReads = readAsOwner(proxy.url, parentKey, id)
    const own = (what: string, body: object) =>
      callServer(server.url, 'POST', `/v1/conversations/${id}/${what}`, parentKey, body)
    expect((await own('takeover', { name: 'Ana' })).status).toBe(200)
    const said: string[] = []
    const asked: string[] = []
    for (let index = 0; index < MESSAGES; index++) {
      const client_id = randomUUID()
      const text = `Question ${index}`
      const sending = persist(() => one.visitor.send.mutate({ conversation: id, client_id, text }))
      if (index % 3 === 0) proxy.cut(index % 2 === 0 ? 'reset' : 'end')
      expect((await sending).turn).toBeNull()
      asked.push(text)
      const reply = { name: 'Ana', client_id: randomUUID(), text: `Answer ${index}` }
      expect((await own('messages', reply)).status).toBe(200)
      said.push(reply.text)
    }
    expect(await listChats()).toHaveLength(1)
    await own('handback', {})
    const [visitorEvents, ownerEvents] = await Promise.all([asVisitorReads, asOwnerReads])
    for (const events of [visitorEvents, ownerEvents]) {
      expect(new Set(events.map((event) => event.id)).size).toBe(events.length)
      expect(messagesOf(events, 'visitor').slice(1)).toEqual(asked)
      expect(messagesOf(events, 'person')).toEqual(said)
    }
    expect(await listChats()).toHaveLength(1)
    await say(visit(server.url), 'And now?', { conversation: id })
    await expect.poll(async () => (await listChats()).length).toBe(2)
  })
})

describe('a takeover during which the server is killed', () => {
  test.each([0, 5, 20, 60])(
    'takes effect only if the answer is also cancelled (killed after %i ms)',
    async (delayMs) => {
      const { server, parentKey, visit, restart } = await startVisit()
      const { conversation, cursor, turn } = await say(visit(server.url), 'Explain. {{up:hang-after 4}}')
      await followUntil(
        visit(server.url),
        { conversation: conversation.id, cursor },
        (_, { length }) => length === 3,
      )
      const path = `/v1/conversations/${conversation.id}`
      const taking = callServer(server.url, 'POST', `${path}/takeover`, parentKey, { name: 'Ana' })
      const ended = taking.catch(() => undefined)
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, delayMs))])
      await server.crash()
      await ended
      const { url } = await restart()
      const readStatus = async () =>
        (await callServer(url, 'GET', `/v1/turns/${turn.id}`, parentKey)).body.status
      await expect.poll(readStatus).not.toBe('in_progress')
      const { body } = await callServer(url, 'GET', path, parentKey)
      const state = [body.parley.mode, await readStatus()].join()
      expect(['person,cancelled', 'model,incomplete', 'model,cancelled']).toContain(state)
    },
  )
})
