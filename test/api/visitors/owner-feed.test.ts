/** Tests how owners follow conversations with the typed client. */
import { describe, expect, test } from 'vitest'
import { startChatHarness } from '../../support/chat-harness.ts'
import { change, startConversation } from '../../support/handover.ts'
import { createTypedClient } from '../../support/rpc.ts'
import { say } from '../../support/visitors.ts'

const harness = await startChatHarness()

interface ListedItem {
  readonly parley: { readonly mode?: string }
}
const REASON = 'wants a person'

describe('an owner who follows a conversation with the typed client', () => {
  test('receives each event after the cursor, with the reason and the person of each change', async () => {
    const { app, id, one, write } = await startConversation(harness)
    const { conversations } = createTypedClient(app)
    const { cursor } = await conversations.open.query({ conversation: id })
    await one.visitor.requestPerson.mutate({ conversation: id, reason: REASON })
    await write('Is a person there?')
    await change(app, id, 'takeover', { name: 'Ana' })
    const leaving = new AbortController()
    const events = []
    const query = { conversation: id, cursor }
    for await (const event of await conversations.follow.query(query, { signal: leaving.signal }))
      if (events.push(event) === 3) break
    leaving.abort()
    expect(events).toMatchObject([
      { event: 'conversation.mode', data: { mode: 'waiting', reason: REASON, assignee: null } },
      { event: 'conversation.item', data: { item: { author: 'visitor', text: 'Is a person there?' } } },
      { event: 'conversation.mode', data: { mode: 'person', assignee: 'Ana' } },
    ])
    const { body } = await app.call('GET', `/v1/conversations/${id}/items`)
    const changes = body.data.filter(({ parley }: ListedItem) => parley.mode !== undefined)
    expect(changes).toMatchObject([
      { parley: { mode: 'person', assignee: 'Ana', reason: null } },
      { parley: { mode: 'waiting', assignee: null, reason: REASON } },
    ])
    const since = changes[0].parley.created_at
    expect((await app.call('GET', `/v1/conversations/${id}`)).body.parley.mode_since).toBe(since)
  })

  test('receives a running answer from its beginning', async () => {
    const { app, id, one } = await startConversation(harness)
    const { items } = await one.visitor.open.query({ conversation: id })
    const last = await say(one, 'Slowly. {{up:chunks 60}}{{up:delay 20}}', { conversation: id })
    const { conversations } = createTypedClient(app)
    const { cursor } = await conversations.open.query({ conversation: id })
    const leaving = new AbortController()
    let text = ''
    const query = { conversation: id, cursor }
    for await (const { event, data } of await conversations.follow.query(query, { signal: leaving.signal })) {
      if (event === 'conversation.turn.delta') text += data.text ?? ''
      if (event === 'conversation.turn.ended') break
    }
    leaving.abort()
    const { items: stored } = await one.visitor.open.query({ conversation: id })
    expect(stored.length).toBe(items.length + 2)
    expect(text).toBe(
      stored.find(({ turn_id: turn, author }) => turn === last.turn.id && author === 'model')?.text,
    )
  })

  test("cannot follow another tenant's conversation", async () => {
    const { id } = await startConversation(harness)
    const other = await harness.start()
    const { conversations } = createTypedClient(other)
    await expect(conversations.open.query({ conversation: id })).rejects.toMatchObject({
      data: { httpStatus: 404 },
    })
  })
})
