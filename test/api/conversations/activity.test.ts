/** Tests lists of conversations by activity, and the stream of changed conversations. */
import { expect, test } from 'vitest'
import { publicIdOf } from '../../support/audit.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { STORING, storeChat } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { changeManager, createKey } from '../../support/managed-keys.ts'
import { createTypedClient } from '../../support/rpc.ts'
import { beginSession, say, sayAndWait } from '../../support/visitors.ts'

const harness = await startChatHarness()

async function start(options = {}) {
  const app = await harness.start({}, options)
  const { agent_id: agent, agent_key: key } = await app.createAgent(STORING)
  const list = async (query: string) => (await app.call('GET', `/v1/conversations?${query}`)).body
  const find = async (query: string) => (await list(query)).data.map((one: { id: string }) => one.id)
  return { app, key, list, find, store: (text: string) => storeChat(app, agent, text) }
}

test('conversations can be listed by activity, page by page, also with filters that few of them match', async () => {
  const clock = createFakeClock()
  const { app, key, list, find, store } = await start({ clock })
  const one = await beginSession(app, key)
  const { sent } = await sayAndWait(one, 'First')
  const first = sent.conversation.id
  clock.advance(1_000)
  const second = await store('Second')
  // In the same second as the previous one.
  const third = await store('Third')
  expect(await find('')).toEqual([third, second, first])
  expect(await find('sort=activity')).toEqual([third, second, first])
  clock.advance(1_000)
  await sayAndWait(one, 'Again', { conversation: first })
  expect(await find('')).toEqual([third, second, first])
  expect(await find('sort=activity')).toEqual([first, third, second])
  expect(await find('sort=activity&order=asc')).toEqual([second, third, first])
  expect(await find('sort=activity&q=again')).toEqual([first])
  expect(await find('sort=activity&channel=api')).toEqual([third, second])
  const page = await list('sort=activity&limit=2')
  expect(page).toMatchObject({ has_more: true, last_id: third })
  expect(await find(`sort=activity&limit=2&after=${page.last_id}`)).toEqual([second])
  expect(await find(`sort=activity&order=asc&limit=1&after=${third}`)).toEqual([first])
})

test('the stream of changes reports new, changed and deleted conversations of the tenant only', async () => {
  const { app, key, store } = await start()
  const other = await store('Hello')
  const leaving = new AbortController()
  const feed = await createTypedClient(app).conversations.changes.query({}, { signal: leaving.signal })
  const events = feed[Symbol.asyncIterator]()
  const next = async () => (await events.next()).value?.conversations
  // Any conversation may have changed before the stream began.
  expect(await next()).toBeNull()
  // Null means that any conversation may have changed, for example after replicas have lost their connection.
  const readUntil = async (id: string) => {
    for (;;) {
      const ids = await next()
      if (ids === undefined) throw new Error('The stream ended.')
      if (ids === null || ids.includes(id)) return
    }
  }
  const { conversation } = await say(await beginSession(app, key), 'Hello')
  await readUntil(conversation.id)
  await app.call('PUT', `/v1/conversations/${other}/tags`, { body: { tags: ['guest'] } })
  await readUntil(other)
  await app.call('DELETE', `/v1/conversations/${other}`)
  await readUntil(other)
  leaving.abort()
})

test('the stream of changes does not report conversations of other tenants', async () => {
  const { app, store } = await start()
  await changeManager(app, { can_manage_keys: true })
  const { key: foreign } = await createKey(app)
  const leaving = new AbortController()
  const client = createTypedClient(app, foreign)
  const feed = await client.conversations.changes.query({}, { signal: leaving.signal })
  const events = feed[Symbol.asyncIterator]()
  expect((await events.next()).value).toEqual({ conversations: null })
  const next = events.next()
  await store('Hello')
  const created = await app.call('POST', '/v1/conversations', { key: foreign, body: {} })
  expect((await next).value).toEqual({ conversations: [created.body.id] })
  leaving.abort()
})

test('a change whose notification was lost is found by a poll', async () => {
  const clock = createFakeClock()
  const { app, store } = await start({ clock })
  const id = await store('Hello')
  const leaving = new AbortController()
  const feed = app.service.deps.conversations.changes.follow(publicIdOf(app.key), leaving.signal)
  expect((await feed.next()).value).toEqual({ conversations: null })
  const next = feed.next()
  const { write } = await app.service.deps.conversations.storage.open()
  await write
    .updateTable('conversations')
    .set((eb) => ({ revision: eb('revision', '+', 1) }))
    .where('id', '=', id)
    .execute()
  expect((await next).value).toEqual({ conversations: null })
  leaving.abort()
})
