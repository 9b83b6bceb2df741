/** Claims side by side: one winner, and nothing lost or moved twice, within a process and between two. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { serviceActor } from '../../src/identity/audit.ts'
import { createParentKey, revokeParentKey } from '../../src/identity/keys.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { publicIdOf } from '../support/audit.ts'
import { as, claim, ownPage, proxied, readMe } from '../support/console.ts'
import { raw } from '../support/database.ts'
import { OtherProcess, source } from '../support/other-process.ts'
import { callServer, makeFolder, runParley, startServer } from '../support/process.ts'

const ada = 'ada@example.org'
const yaml = 'name: Guide\ninstructions: Help.\n'
const people = Array.from({ length: 25 }, (_, index) => `user${index}@example.org`)

/** A service with a database on disk, where every one of these has an agent. */
async function start(emails: readonly string[]): Promise<TestApp> {
  const app = await startApp({ ...proxied, PARLEY_DATA_DIR: await makeFolder() })
  await Promise.all(
    emails.map((email) => app.call('POST', '/v1/manager/agents', as(email, { body: { yaml } }))),
  )
  return app
}

test('of twenty-five users who claim one key, one has it, and the others keep what they had', async () => {
  const app = await start(people)
  const answers = await Promise.all(people.map((email) => claim(app, email, app.key)))
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

test('one user who claims one key twenty times at once moves everything once', async () => {
  const app = await start([ada])
  const answers = await Promise.all(Array.from({ length: 20 }, () => claim(app, ada, app.key)))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  expect(answers.reduce((sum, { body }) => sum + body.moved.agents, 0)).toBe(1)
  expect(await readMe(app, ada)).toMatchObject({ agents: 1, keys: [{ is_automatic: false }] })
})

test('one user who claims many keys at once has them all, and their agents with one of them', async () => {
  const app = await start([ada])
  const { deps } = app.service
  const keys = await Promise.all(
    Array.from({ length: 10 }, (_, index) => createParentKey(deps, serviceActor, `${index}`)),
  )
  const answers = await Promise.all(keys.map(({ text }) => claim(app, ada, text)))
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200))
  expect(answers.reduce((sum, { body }) => sum + body.moved.agents, 0)).toBe(1)
  expect((await readMe(app, ada)).keys).toHaveLength(10)
  const counts = keys.map(async ({ text }) => (await app.call('GET', '/v1/agents', { key: text })).body.data)
  expect((await Promise.all(counts)).flat()).toHaveLength(1)
})

test('a claim and a revocation leave the agents where somebody can reach them', async () => {
  const app = await start(people.slice(0, 8))
  const { deps } = app.service
  for (const email of people.slice(0, 8)) {
    const key = await createParentKey(deps, serviceActor, email)
    const [claimed] = await Promise.all([
      claim(app, email, key.text),
      revokeParentKey(deps, serviceActor, key.publicId),
    ])
    const { agents } = await readMe(app, email)
    // Claimed first, they went with a key that then was ended, as it would have been an hour later.
    expect([claimed.status, agents]).toEqual(claimed.status === 200 ? [200, 0] : [404, 1])
  }
})

describe('two processes', () => {
  /** Claims each key for its user as soon as it is told to, and says how each claim went. */
  const script = (folder: string) => `
    import { randomBytes } from 'node:crypto'
    import { createAgentDirectory } from ${source('agents/cache.ts')}
    import { userActor } from ${source('identity/audit.ts')}
    import { parseConfig } from ${source('config/parse.ts')}
    import { claimKey } from ${source('console/parent-keys.ts')}
    import { findOrCreateUser } from ${source('identity/users.ts')}
    import { openDatabase } from ${source('db/open.ts')}
    import { createPositions } from ${source('lib/clock.ts')}
    import { createKeyDirectory } from ${source('identity/authenticate.ts')}
    import { systemClock as clock } from ${source('lib/clock.ts')}
    import { createUsageTracker } from ${source('usage/tracker.ts')}
    const { db } = await openDatabase({ dataDir: ${JSON.stringify(`${folder}/data`)}, role: 'command' })
    const { config } = await parseConfig({})
    const random = randomBytes
    const keys = createKeyDirectory(db, clock)
    const usage = createUsageTracker({ config, db, clock, random, log: undefined })
    const nextPosition = createPositions(clock)
    const deps = { db, clock, random, nextPosition, keys, usage, agents: createAgentDirectory(db, clock) }
    const email = 'there@example.org'
    const trace = { requestId: 'there', clientAddress: '127.0.0.1' }
    const { id } = await findOrCreateUser(deps, { email, name: email, username: undefined, groups: [] }, trace)
    const actor = userActor(email, trace)
    console.log('ready')
    process.stdin.once('data', async (text) => {
      const claims = JSON.parse(text).map((key) => claimKey(deps, actor, id, key)
        .then(() => 200, (error) => error.status))
      console.log(JSON.stringify(await Promise.all(claims)))
    })
  `

  test('that claim the same keys agree who has each of them', async () => {
    const folder = await makeFolder()
    const server = await startServer({ folder, env: { ...proxied } })
    const created = await Promise.all(
      Array.from({ length: 5 }, async (_, index) => {
        const { stdout } = await runParley(['keys', 'create', '--name', `key ${index}`], { folder })
        return stdout.trim()
      }),
    )
    const keys = [server.key as string, ...created]
    const other = new OtherProcess(script(folder))
    expect(await other.hears()).toBe('ready')
    other.say(JSON.stringify(keys))
    const here = await Promise.all(
      keys.map(async (key) => {
        const response = await fetch(`${server.url}/v1/manager/claim-key`, {
          method: 'POST',
          headers: { 'X-Email': 'here@example.org', 'Content-Type': 'application/json', ...ownPage },
          body: JSON.stringify({ parent_key: key }),
        })
        return response.status
      }),
    )
    const there: number[] = JSON.parse(await other.hears())
    for (const [index, status] of here.entries()) {
      expect([status, there[index]].sort()).toEqual([200, 409])
      expect((await callServer(server.url, 'GET', '/v1/models', keys[index])).status).toBe(200)
    }
    const claimed = raw(join(folder, 'data'))
      .prepare(`select target_id from audit_events where action = 'key.claim'`)
      .pluck()
      .all()
    expect(claimed.sort()).toEqual(keys.map(publicIdOf).sort())
  })
})
