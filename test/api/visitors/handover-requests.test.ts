/** Tests how visitors, models and owners ask for a person, and how a wait for a person ends. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { unixSeconds } from '../../../src/lib/clock.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { answer, change, readMessages, startConversation, startVisit } from '../../support/handover.ts'
import { createTypedClient } from '../../support/rpc.ts'
import { say, sayAndWait } from '../../support/visitors.ts'

const harness = await startChatHarness()

test('a visitor cannot ask for a person if the agent disables the button, but the owner can', async () => {
  const { app, id, one } = await startConversation(harness, { button: false })
  await expect(one.visitor.requestPerson.mutate({ conversation: id })).rejects.toMatchObject({
    data: { httpStatus: 403, code: 'not_allowed' },
  })
  expect((await change(app, id, 'handover')).body.mode).toBe('waiting')
})

test('a reason that contains U+0000 or half of a surrogate pair, or is too long, is rejected', async () => {
  const { app, id, one } = await startConversation(harness)
  for (const reason of ['a\0b', '\udc00', 'x'.repeat(501)]) {
    const { status, body } = await change(app, id, 'handover', { reason })
    expect([status, body.error.param]).toEqual([400, 'reason'])
    const request = one.visitor.requestPerson.mutate({ conversation: id, reason })
    await expect(request).rejects.toMatchObject({ data: { httpStatus: 400, param: 'reason' } })
  }
})

describe('the tool request_person', () => {
  const args = JSON.stringify({ reason: 'wants a person' })

  test('asks for a person, and in later turns its result contains the times of the handover and the handback', async () => {
    const { app, one } = await startVisit(harness)
    await harness.upstream.script('/v1/chat/completions', `{{up:tool request_person ${args}}}`, 1)
    const { sent } = await sayAndWait(one, 'I want a person.')
    const id = sent.conversation.id
    const opened = await one.visitor.open.query({ conversation: id })
    expect(opened).toMatchObject({ conversation: { mode: 'waiting' }, turn: { status: 'completed' } })
    const [first, second] = await harness.listChats()
    expect(JSON.stringify(first?.body)).toContain('request_person')
    expect(JSON.stringify(second?.body)).toContain('Handed over at')
    const client = createTypedClient(app)
    const waiting = await client.conversations.waiting.query({})
    expect((await waiting[Symbol.asyncIterator]().next()).value).toMatchObject({
      count: 1,
      conversations: [{ id }],
    })
    await answer(app, id, 'Hello.')
    await change(app, id, 'handback')
    await sayAndWait(one, 'Thanks.', { conversation: id })
    const result = (await readMessages(harness)).find(({ role }) => role === 'tool')
    expect(result?.content).toMatch(/^Handed over at \S+Z, handed back at \S+Z\.$/)
  })

  test.each([
    ['the agent does not allow it', { tool: false }, {}],
    ['the request is not stored', {}, { store: false }],
  ])('is not offered if %s', async (_, handover, more) => {
    const { app, agent } = await startVisit(harness, handover)
    const body = { model: `agent/${agent}`, messages: [{ role: 'user', content: 'Hello.' }], ...more }
    await app.call('POST', '/v1/chat/completions', { body })
    expect(JSON.stringify(await harness.listChats())).not.toContain('request_person')
  })
})

describe('a wait for a person', () => {
  async function startWait(handover: object) {
    const clock = createFakeClock()
    const { app, one } = await startVisit(harness, handover, clock)
    const { body } = await app.call('POST', '/v1/conversations', { body: {} })
    return { app, clock, one, id: body.id as string }
  }

  async function pass(app: Awaited<ReturnType<typeof startWait>>['app'], id: string) {
    await app.service.deps.conversations.sweep(false)
    return (await app.call('GET', `/v1/conversations/${id}`)).body.parley.mode
  }

  test('ends after the timeout with a text for the visitor', async () => {
    const { app, clock, one } = await startWait({})
    const { conversation } = await say(one, 'Hello.')
    const id = conversation.id
    const status = async () => (await one.visitor.open.query({ conversation: id })).turn?.status
    await expect.poll(status).toBe('completed')
    await one.visitor.requestPerson.mutate({ conversation: id })
    clock.advance(599)
    expect(await pass(app, id)).toBe('waiting')
    clock.advance(1)
    expect(await pass(app, id)).toBe('model')
    const { items } = await one.visitor.open.query({ conversation: id })
    expect(items.at(-1)).toMatchObject({ author: 'service', text: 'Nobody is available.' })
  })

  test('begins if the person who took over does not write in time, and then ends after the timeout', async () => {
    const { app, clock, id } = await startWait({})
    await change(app, id, 'takeover')
    clock.advance(600)
    expect(await pass(app, id)).toBe('waiting')
    clock.advance(600)
    expect(await pass(app, id)).toBe('model')
    const { body } = await app.call('GET', `/v1/conversations/${id}/items`)
    expect(body.data[0]).toMatchObject({ role: 'assistant', parley: { author: 'service' } })
  })

  test('does not begin again if the person has answered', async () => {
    const { app, clock, id } = await startWait({})
    await answer(app, id, 'Hello.')
    clock.advance(10_000)
    expect(await pass(app, id)).toBe('person')
  })
})

test('the list of waiting conversations is sent again after each change', async () => {
  const { app, agent, id, one } = await startConversation(harness)
  const leaving = new AbortController()
  const feed = await createTypedClient(app).conversations.waiting.query({}, { signal: leaving.signal })
  const counts: number[] = []
  for await (const { count, conversations } of feed) {
    counts.push(count)
    if (counts.length === 1) await one.visitor.requestPerson.mutate({ conversation: id })
    if (counts.length === 2) {
      expect(conversations).toMatchObject([{ id, agent_id: agent, title: 'Hello.' }])
      await change(app, id, 'takeover')
    }
    if (counts.length === 3) break
  }
  leaving.abort()
  expect(counts).toEqual([0, 1, 0])
})

test("a visitor's reply is listed for the person who answers, until that person answers or the time is over", async () => {
  const clock = createFakeClock()
  const { app, agent, one } = await startVisit(harness, {}, clock)
  const { sent } = await sayAndWait(one, 'Hello.')
  const id = sent.conversation.id
  const write = (text: string) => one.visitor.send.mutate({ conversation: id, client_id: randomUUID(), text })
  const client = createTypedClient(app)
  const readMine = async () => {
    const leaving = new AbortController()
    const feed = await client.conversations.waiting.query({}, { signal: leaving.signal })
    const { value } = await feed[Symbol.asyncIterator]().next()
    leaving.abort()
    return value?.mine
  }
  const readDue = async () => (await app.call('GET', `/v1/conversations/${id}`)).body.parley.answer_due
  expect(await readDue()).toBeNull()
  // The person who has just taken a conversation over knows of it.
  await change(app, id, 'takeover')
  expect(await readDue()).toBe(unixSeconds(clock) + 600)
  expect(await readMine()).toEqual([])
  await answer(app, id, 'How can I help?')
  expect(await readDue()).toBeNull()
  await write('I want a refund.')
  const due = unixSeconds(clock) + 600
  clock.advance(60)
  await write('Are you there?')
  expect(await readDue()).toBe(due)
  expect(await readMine()).toEqual([{ id, agent_id: agent, title: 'Hello.', answer_due: due }])
  await answer(app, id, 'Yes.')
  expect(await readMine()).toEqual([])
  await write('Good.')
  expect(await readMine()).toMatchObject([{ id, answer_due: unixSeconds(clock) + 600 }])
  clock.advance(600)
  await app.service.deps.conversations.sweep(false)
  expect(await readMine()).toEqual([])
  // A reply to another person is not listed.
  await answer(app, id, 'Hello again.', { name: 'Ana' })
  await write('Hello Ana.')
  expect(await readMine()).toEqual([])
})
