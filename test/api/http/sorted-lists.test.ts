/** Tests how the lists of agents, files, users, keys and audit log entries are searched, sorted and paged. */
import { describe, expect, test } from 'vitest'
import { asAdmin, startAdminApp } from '../../support/admin.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { readMe } from '../../support/console.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { filePart, purpose, upload } from '../../support/files.ts'

interface Listed {
  readonly id?: string
  readonly name?: string
  readonly filename?: string
  readonly email?: string
}

/** Reads all pages with two items each, and returns the items' names. */
async function readNames(
  path: string,
  nameOf: (item: Listed) => string | undefined,
  call: (
    path: string,
  ) => Promise<{ status: number; text: string; body: { data: Listed[]; has_more: boolean } }>,
): Promise<(string | undefined)[]> {
  const names: (string | undefined)[] = []
  for (let after = ''; ; ) {
    const { status, body, text } = await call(`${path}${path.includes('?') ? '&' : '?'}limit=2${after}`)
    if (status !== 200) throw new Error(text)
    names.push(...body.data.map(nameOf))
    if (!body.has_more) return names
    after = `&after=${body.data.at(-1)?.id}`
  }
}

const named = ['beta', 'Alpha', 'delta', 'beta', '50%_off']

const listAgents = (app: TestApp, query: string) =>
  readNames(
    `/v1/agents?${query}`,
    ({ name }) => name,
    (path) => app.call('GET', path),
  )

const definitionOf = (name: string) => `name: "${name}"\ninstructions: Help.\n`

/** Creates the agents, one each minute. */
async function startWithAgents(clock = createFakeClock()): Promise<TestApp> {
  const app = await startApp({}, { clock })
  for (const name of named) {
    clock.advance(60)
    await app.createAgent(definitionOf(name))
  }
  return app
}

describe('the agent list', () => {
  test('is sorted by name without regard to case, in both directions and across pages', async () => {
    const app = await startWithAgents()
    const sorted = ['50%_off', 'Alpha', 'beta', 'beta', 'delta']
    expect(await listAgents(app, 'sort=name&order=asc')).toEqual(sorted)
    expect(await listAgents(app, 'sort=name&order=desc')).toEqual(sorted.toReversed())
  })

  test('is sorted by the time of the last change, in both directions and across pages', async () => {
    const clock = createFakeClock()
    const app = await startWithAgents(clock)
    for (const [before, after] of [
      ['delta', 'zeta'],
      ['Alpha', 'epsilon'],
    ] as const) {
      clock.advance(60)
      const { body } = await app.call('GET', `/v1/agents?q=${before}`)
      const changed = { body: { yaml: definitionOf(after) } }
      expect((await app.call('PUT', `/v1/agents/${body.data[0].id}`, changed)).status).toBe(200)
    }
    const sorted = ['beta', 'beta', '50%_off', 'zeta', 'epsilon']
    expect(await listAgents(app, 'sort=updated&order=asc')).toEqual(sorted)
    expect(await listAgents(app, 'sort=updated&order=desc')).toEqual(sorted.toReversed())
  })

  test('returns the items before an id in list order', async () => {
    const app = await startWithAgents()
    const { body } = await app.call('GET', '/v1/agents?sort=name&order=asc')
    const before = `sort=name&order=asc&limit=2&before=${body.data[4].id}`
    const page = await app.call('GET', `/v1/agents?${before}`)
    expect(page.body.data.map(({ id }: Listed) => id)).toEqual([body.data[2].id, body.data[3].id])
  })

  test('is searched by name and id, and treats % and _ as ordinary characters', async () => {
    const app = await startWithAgents()
    expect(await listAgents(app, 'q=BET')).toEqual(['beta', 'beta'])
    expect(await listAgents(app, `q=${encodeURIComponent('%_')}`)).toEqual(['50%_off'])
    expect(await listAgents(app, 'q=b%25a')).toEqual([])
    const { body } = await app.call('GET', '/v1/agents')
    expect(await listAgents(app, `q=${body.data[1].id.slice(6)}`)).toEqual([body.data[1].name])
  })

  test('rejects unknown sort keys, long searches and positions outside the list', async () => {
    const app = await startWithAgents()
    const rejected = {
      'sort=size': /^sort: must be created, name or updated/,
      'q=': /^q: must not be empty/,
      [`q=${'x'.repeat(201)}`]: /^q: must be at most 200 characters/,
      'after=agent-0': /^after: must be the id of an item in this list/,
    }
    for (const [query, message] of Object.entries(rejected)) {
      const { status, body } = await app.call('GET', `/v1/agents?${query}`)
      expect([status, typeof body.error === 'string' ? body.error : body.error.message]).toEqual([
        400,
        expect.stringMatching(message),
      ])
    }
  })
})

describe('the file list', () => {
  test('is sorted by name and size and searched by name', async () => {
    const app = await startApp()
    for (const [index, name] of ['b.txt', 'A.txt', 'c.md'].entries())
      await upload(app, [filePart('x'.repeat(10 - index), name), purpose])
    const list = (query: string) =>
      readNames(
        `/v1/files?${query}`,
        ({ filename }) => filename,
        (path) => app.call('GET', path),
      )
    expect(await list('sort=name&order=asc')).toEqual(['A.txt', 'b.txt', 'c.md'])
    expect(await list('sort=name&order=desc')).toEqual(['c.md', 'b.txt', 'A.txt'])
    expect(await list('sort=size&order=asc')).toEqual(['c.md', 'A.txt', 'b.txt'])
    expect(await list('sort=size&order=desc')).toEqual(['b.txt', 'A.txt', 'c.md'])
    expect(await list('q=.TXT')).toEqual(['A.txt', 'b.txt'])
  })
})

describe('the administrator API', () => {
  const emails = ['eve@example.org', 'ada@example.org', 'bob@example.org']

  async function startWithUsers() {
    const app = await startAdminApp()
    for (const email of emails) await readMe(app, email)
    const list = (path: string, nameOf: (item: Listed) => string | undefined) =>
      readNames(path, nameOf, (at) => asAdmin(app, 'GET', at))
    return { app, list }
  }

  test('sorts and searches users by email address', async () => {
    const { list } = await startWithUsers()
    const users = await list('/users?sort=email&order=asc', ({ email }) => email)
    expect(users).toEqual([...emails, 'root@example.org'].toSorted())
    expect(await list('/users?q=ADA', ({ email }) => email)).toEqual(['ada@example.org'])
  })

  test('filters keys by user, state and name', async () => {
    const { app, list } = await startWithUsers()
    const { data: users } = (await asAdmin(app, 'GET', '/users?q=bob')).body
    const nameOf = ({ name }: Listed) => name
    expect(await list(`/keys?user=${users[0].id}`, nameOf)).toEqual(['bob@example.org'])
    await asAdmin(app, 'POST', `/keys/${users[0].keys[0].id}/revoke`)
    expect(await list('/keys?state=revoked', nameOf)).toEqual(['bob@example.org'])
    const live = await list('/keys?state=active&sort=name&order=asc', nameOf)
    expect(live).toContain('ada@example.org')
    expect(live).not.toContain('bob@example.org')
    expect(await list('/keys?q=eve', nameOf)).toEqual(['eve@example.org'])
    expect(await list('/keys?sort=last_used&state=disabled', nameOf)).toEqual([])
  })

  test('returns the audit log in both directions', async () => {
    const { list } = await startWithUsers()
    const newest = await list('/audit', ({ id }) => id)
    expect(newest.length).toBeGreaterThan(2)
    expect(await list('/audit?order=asc', ({ id }) => id)).toEqual(newest.toReversed())
  })
})
