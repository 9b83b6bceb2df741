/** Tests the limits on page size, items and storage of conversations. */
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { collect, failureOf } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { openConversations } from '../../support/stored-chats.ts'

const message = (content: string) => ({ type: 'message' as const, role: 'user' as const, content })
const KILOBYTE = 1_000

/** Adds one item; returns the response's status. */
async function add(app: TestApp, id: string, content: string): Promise<number> {
  const body = { items: [message(content)] }
  return (await app.call('POST', `/v1/conversations/${id}/items`, { body })).status
}

test('a page of items contains at most 2 MiB, and the next pages contain the rest', async () => {
  const app = await startApp()
  const client = app.openai()
  const { id } = await client.conversations.create()
  const letters = ['a', 'b', 'c', 'd', 'e']
  for (const letter of letters) expect(await add(app, id, letter.repeat(900 * KILOBYTE))).toBe(200)
  const page = await client.conversations.items.list(id, { limit: 100, order: 'asc' })
  expect([page.data.length, page.has_more]).toEqual([2, true])
  const all = await collect(client.conversations.items.list(id, { limit: 100, order: 'asc' }))
  const starts = all.map((item) => JSON.stringify(item).match(/"([a-e])\1{9}/)?.[1])
  expect(starts).toEqual(letters)
})

test('concurrent requests cannot add more than 10,000 items to a conversation', async () => {
  const app = await startApp()
  const { id } = await app.openai().conversations.create()
  const db = await openConversations(app)
  await db.updateTable('conversations').set({ items: 9_997 }).where('id', '=', id).execute()
  const statuses = await Promise.all(Array.from({ length: 10 }, () => add(app, id, 'x')))
  expect(statuses.toSorted()).toEqual([...Array(3).fill(200), ...Array(7).fill(409)])
})

describe('PARLEY_CONVERSATIONS_MAX_BYTES', () => {
  test('also limits the number of empty conversations', async () => {
    const app = await startApp({ PARLEY_CONVERSATIONS_MAX_BYTES: '4000' }, { clock: createFakeClock() })
    const create = async () => (await app.call('POST', '/v1/conversations', { body: {} })).status
    const statuses: number[] = []
    for (let count = 0; count < 6; count++) statuses.push(await create())
    expect(statuses).toEqual([200, 200, 200, 200, 507, 507])
  })

  test('includes metadata and items that were added in the last few seconds', async () => {
    const app = await startApp({ PARLEY_CONVERSATIONS_MAX_BYTES: '20000' }, { clock: createFakeClock() })
    const { id } = await app.openai().conversations.create()
    const statuses: number[] = []
    for (let count = 0; count < 6; count++) statuses.push(await add(app, id, 'x'.repeat(5 * KILOBYTE)))
    expect(statuses).toEqual([200, 200, 200, 200, 507, 507])
    const large = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`k${index}`, 'v'.repeat(500)]))
    const other = await startApp({ PARLEY_CONVERSATIONS_MAX_BYTES: '5000' }, { clock: createFakeClock() })
    await other.openai().conversations.create({ metadata: large })
    expect(await failureOf(other.openai().conversations.create())).toMatchObject({ status: 507 })
  })
})

test('the title of a conversation is the start of its first message, even if that message is very long', async () => {
  const app = await startApp()
  const client = app.openai()
  const items = [message(`${' '.repeat(5_000)}Hello   \n world ${'x'.repeat(500 * KILOBYTE)}`)]
  const { id } = await client.conversations.create({ items })
  const { body } = await app.call('GET', `/v1/conversations/${id}`)
  expect(body.parley.title).toBe(`Hello world ${'x'.repeat(68)}`)
})
