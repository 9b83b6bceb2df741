/** Tests that concurrent claims of parent keys do not lose or duplicate data. */
import { expect, test } from 'vitest'
import { serviceActor } from '../../../src/identity/audit.ts'
import { createParentKey, revokeParentKey } from '../../../src/identity/keys.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { asUser, behindProxy, claimKey, readMe } from '../../support/console.ts'
import { makeFolder } from '../../support/process.ts'

const ada = 'ada@example.org'
const yaml = 'name: Guide\ninstructions: Help.\n'
const people = Array.from({ length: 25 }, (_, index) => `user${index}@example.org`)

/** Starts a service with a database on disk and an agent for each of these users. */
async function start(emails: readonly string[]): Promise<TestApp> {
  const app = await startApp({ ...behindProxy, PARLEY_DATA_DIR: await makeFolder() })
  await Promise.all(
    emails.map((email) => app.call('POST', '/v1/manager/agents', asUser(email, { body: { yaml } }))),
  )
  return app
}

test('a key that 25 users claim concurrently is assigned to one of them, and the others keep their data', async () => {
  const app = await start(people)
  const answers = await Promise.all(people.map((email) => claimKey(app, email, app.key)))
  const statuses = answers.map(({ status }) => status)
  expect(statuses.toSorted()).toEqual([200, ...Array.from({ length: 24 }, () => 409)])
  const winner = statuses.indexOf(200)
  expect(answers[winner]?.body.moved.agents).toBe(1)
  for (const [index, email] of people.entries()) {
    const me = await readMe(app, email)
    const isWinner = index === winner
    expect([email, me.agents, me.keys.length, me.keys[0].is_automatic]).toEqual([email, 1, 1, !isWinner])
    expect(me.parent_key === app.key.slice(0, 16)).toBe(isWinner)
  }
})

test("20 concurrent claims of a key by the same user move the user's data only once", async () => {
  const app = await start([ada])
  const answers = await Promise.all(Array.from({ length: 20 }, () => claimKey(app, ada, app.key)))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  expect(answers.reduce((sum, { body }) => sum + body.moved.agents, 0)).toBe(1)
  expect(await readMe(app, ada)).toMatchObject({ agents: 1, keys: [{ is_automatic: false }] })
})

test('a user who claims several keys concurrently owns all of them, and one of the keys receives the agents', async () => {
  const app = await start([ada])
  const { deps } = app.service
  const keys = await Promise.all(
    Array.from({ length: 10 }, (_, index) => createParentKey(deps, serviceActor, `${index}`)),
  )
  const answers = await Promise.all(keys.map(({ text }) => claimKey(app, ada, text)))
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200))
  expect(answers.reduce((sum, { body }) => sum + body.moved.agents, 0)).toBe(1)
  expect((await readMe(app, ada)).keys).toHaveLength(10)
  const counts = keys.map(async ({ text }) => (await app.call('GET', '/v1/agents', { key: text })).body.data)
  expect((await Promise.all(counts)).flat()).toHaveLength(1)
})

test('a claim during the revocation of its key moves either all agents or none', async () => {
  const app = await start(people.slice(0, 8))
  const { deps } = app.service
  for (const email of people.slice(0, 8)) {
    const key = await createParentKey(deps, serviceActor, email)
    const [claimed] = await Promise.all([
      claimKey(app, email, key.text),
      revokeParentKey(deps, serviceActor, key.publicId),
    ])
    const { agents } = await readMe(app, email)
    // If the claim came first, the agents belong to the key, which was revoked afterwards.
    expect([claimed.status, agents]).toEqual(claimed.status === 200 ? [200, 0] : [404, 1])
  }
})
