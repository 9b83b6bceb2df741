/** Tests which events webhooks receive when people answer conversations. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { answer, change } from '../../support/handover.ts'
import { eventually } from '../../support/process.ts'
import { storingAgent } from '../../support/stored-chats.ts'
import { beginSession, say } from '../../support/visitors.ts'
import { allowLoopback, createWebhook, deliverDue, startReceiver } from '../../support/webhook-receiver.ts'

const harness = await startChatHarness()

const handoverEvents = ['waiting', 'taken_over', 'message', 'handed_back'].map(
  (name) => `conversation.${name}`,
)

/** Starts a conversation that the model has answered, and a webhook for the events of a handover. */
async function startWithWebhook(fields: object = {}, first = 'Hello.') {
  const clock = createFakeClock()
  const app = await harness.start(allowLoopback, { clock })
  const receiver = await startReceiver()
  await createWebhook(app, { url: receiver.url, events: handoverEvents, ...fields })
  const { agent_key: key, agent_id: agentId } = await app.createAgent(storingAgent({ handover: {} }))
  const one = await beginSession(app, key)
  const { id } = (await say(one, first)).conversation
  const readStatus = async () => (await one.visitor.open.query({ conversation: id })).turn?.status
  await eventually(readStatus, 'completed')
  const write = (text: string, client_id = randomUUID()) =>
    one.visitor.send.mutate({ conversation: id, client_id, text })
  return { app, clock, receiver, agentId, one, id, write }
}

type Setup = Awaited<ReturnType<typeof startWithWebhook>>

/** Runs a change and attempts its deliveries; returns the bodies that the receiver gets. */
async function deliveredBy({ app, receiver }: Pick<Setup, 'app' | 'receiver'>, act: () => Promise<unknown>) {
  const { length } = receiver.received
  await act()
  await deliverDue(app)
  return receiver.received.slice(length).map(({ body }) => body)
}

describe('a handover', () => {
  test('sends each of its events once, with the mode and an increasing revision, and without text', async () => {
    const setup = await startWithWebhook()
    const { app, one, id, agentId, write, receiver } = setup
    const item = { item_id: expect.stringMatching(/^msg_/) }
    const steps = [
      [
        () => one.visitor.requestPerson.mutate({ conversation: id, reason: 'a canary' }),
        [['waiting', { mode: 'waiting' }]],
      ],
      [() => write('a canary'), [['message', { ...item, mode: 'waiting', author: 'visitor' }]]],
      [() => change(app, id, 'takeover', { name: 'Canary' }), [['taken_over', { mode: 'person' }]]],
      [
        () => answer(app, id, 'a canary', { name: 'Canary' }),
        [['message', { ...item, mode: 'person', author: 'person' }]],
      ],
      [() => change(app, id, 'handback'), [['handed_back', { mode: 'model' }]]],
    ] as const
    for (const [act, events] of steps)
      expect(await deliveredBy(setup, act)).toEqual(
        events.map(([name, data]) => ({
          type: `conversation.${name}`,
          timestamp: '2027-01-15T08:00:00Z',
          data: { conversation_id: id, agent_id: agentId, url: null, revision: expect.any(Number), ...data },
        })),
      )
    const revisions = receiver.received.map(({ body }) => body.data.revision)
    expect(revisions).toEqual([...new Set<number>(revisions)].toSorted((a, b) => a - b))
    expect(receiver.received.map(({ text }) => text).join()).not.toMatch(/canary/i)
    expect(new Set(receiver.received.map(({ id: delivery }) => delivery)).size).toBe(steps.length)
  })

  test('sends the texts of messages, but not the reason, to a webhook that includes text', async () => {
    const setup = await startWithWebhook({ include_text: true })
    const { app, one, id, write } = setup
    const sent = await deliveredBy(setup, async () => {
      await one.visitor.requestPerson.mutate({ conversation: id, reason: 'a canary' })
      await write('Where is it?')
      await answer(app, id, 'Here.')
      await change(app, id, 'handback')
    })
    const texts = sent.map(({ type, data }) => [type, data.text]).filter(([, text]) => text !== undefined)
    expect(texts.sort()).toEqual([
      ['conversation.message', 'Here.'],
      ['conversation.message', 'Where is it?'],
    ])
    expect(JSON.stringify(sent)).not.toContain('canary')
  })

  test('sends two events if a person takes over by sending a message', async () => {
    const setup = await startWithWebhook()
    const sent = await deliveredBy(setup, () => answer(setup.app, setup.id, 'Hello.'))
    expect(sent.map(({ type }) => type).sort()).toEqual(['conversation.message', 'conversation.taken_over'])
    expect(new Set(sent.map(({ data }) => data.revision)).size).toBe(1)
    expect(new Set(sent.map(({ data }) => data.mode))).toEqual(new Set(['person']))
  })

  test('sends the event of a message once, even if the message is sent three times', async () => {
    const setup = await startWithWebhook()
    const { app, one, id, write } = setup
    await deliveredBy(setup, () => one.visitor.requestPerson.mutate({ conversation: id }))
    const client_id = randomUUID()
    const ofVisitor = await deliveredBy(setup, () =>
      Promise.all([1, 2, 3].map(() => write('Once.', client_id))),
    )
    expect(ofVisitor).toMatchObject([{ type: 'conversation.message', data: { author: 'visitor' } }])
    await deliveredBy(setup, () => change(app, id, 'takeover'))
    const own = { client_id: randomUUID() }
    const ofPerson = await deliveredBy(setup, () =>
      Promise.all([1, 2, 3].map(() => answer(app, id, 'Once.', own))),
    )
    expect(ofPerson).toMatchObject([{ type: 'conversation.message', data: { author: 'person' } }])
  })

  test('sends no event if it is rejected', async () => {
    const setup = await startWithWebhook()
    const { app, id } = setup
    expect(await deliveredBy(setup, () => change(app, id, 'handback'))).toEqual([])
    await deliveredBy(setup, () => change(app, id, 'takeover', { name: 'Ana' }))
    const rejected = async () => {
      expect((await change(app, id, 'takeover', { name: 'Bo' })).status).toBe(409)
      expect((await answer(app, id, 'Me, too.', { name: 'Bo' })).status).toBe(409)
    }
    expect(await deliveredBy(setup, rejected)).toEqual([])
  })

  test('sends `conversation.waiting` when the model asks for a person', async () => {
    const args = JSON.stringify({ reason: 'a canary' })
    await harness.upstream.script('/v1/chat/completions', `{{up:tool request_person ${args}}}`, 1)
    const setup = await startWithWebhook({}, 'I want a person.')
    await deliverDue(setup.app)
    const sent = setup.receiver.received
    const data = { conversation_id: setup.id, mode: 'waiting' }
    expect(sent.map(({ body }) => body)).toMatchObject([{ type: 'conversation.waiting', data }])
    expect(sent[0]?.text).not.toContain('canary')
  })

  test("sends the service's `conversation.message` and `conversation.handed_back` when no person answers in time", async () => {
    const setup = await startWithWebhook()
    const { app, clock, one, id } = setup
    await deliveredBy(setup, () => one.visitor.requestPerson.mutate({ conversation: id }))
    clock.advance(600)
    const sent = await deliveredBy(setup, () => app.service.deps.conversations.sweep(false))
    expect(sent.map(({ type, data }) => [type, data.mode, data.author]).sort()).toEqual([
      ['conversation.handed_back', 'model', undefined],
      ['conversation.message', 'model', 'service'],
    ])
    expect(await deliveredBy(setup, () => app.service.deps.conversations.sweep(false))).toEqual([])
  })

  test('sends `conversation.waiting` when the person who took over does not answer in time', async () => {
    const setup = await startWithWebhook()
    const { app, clock, id } = setup
    await deliveredBy(setup, () => change(app, id, 'takeover'))
    clock.advance(600)
    const sent = await deliveredBy(setup, () => app.service.deps.conversations.sweep(false))
    expect(sent).toMatchObject([{ type: 'conversation.waiting', data: { mode: 'waiting' } }])
  })
})
