/** Tests how agents and their versions are listed page by page. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createTenant, FULL_DEFINITION, listIds } from '../../support/agents.ts'
import { GREETER, startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

async function createAgents(app: TestApp, count: number, key = app.key): Promise<string[]> {
  const ids: string[] = []
  for (let made = 0; made < count; made++) ids.unshift((await app.createAgent(GREETER, key)).agent_id)
  return ids
}

const list = (app: TestApp, query = '', key = app.key) => app.call('GET', `/v1/agents${query}`, { key })

describe('the agent list without pagination parameters', () => {
  test('is initially empty and has no pagination fields', async () => {
    const app = await startApp()
    expect((await list(app)).body).toEqual({ object: 'list', data: [] })
  })

  test("includes each agent's settings, and `behavior` only if it is set", async () => {
    const app = await startApp({}, { clock: createFakeClock(1_800_000_000) })
    const full = await app.createAgent(FULL_DEFINITION)
    const plain = await app.createAgent()
    const { status, headers, body } = await list(app)
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(body).toEqual({
      object: 'list',
      data: [
        {
          id: plain.agent_id,
          agent_key: plain.agent_key,
          name: 'Greeter',
          model: 'mock',
          tools: [],
          markdown: '---\nname: Greeter\n---\n\nGreet people.',
          created_at: 1_800_000_000,
        },
        {
          id: full.agent_id,
          agent_key: full.agent_key,
          name: 'Guide',
          model: 'mock',
          tools: ['search', expect.objectContaining({ name: 'look_up' })],
          behavior: { tone: 'calm', rules: ['Be brief.', 'Say please.'] },
          markdown: (await app.call('GET', `/v1/agents/${full.agent_id}`)).body.markdown,
          created_at: 1_800_000_000,
        },
      ],
    })
    expect(body.data[0]).not.toHaveProperty('behavior')
  })

  test('includes all 150 agents newest first, even if they were created in the same second', async () => {
    const app = await startApp({}, { clock: createFakeClock() })
    const ids = await createAgents(app, 150)
    expect(await listIds(app)).toEqual(ids)
  })

  test('lists an updated agent at its old position, with its original creation time', async () => {
    const clock = createFakeClock()
    const app = await startApp({}, { clock })
    const ids = await createAgents(app, 3)
    const before = (await list(app)).body.data
    clock.advance(5)
    await app.call('PUT', `/v1/agents/${ids[2]}`, { body: { yaml: FULL_DEFINITION } })
    await app.call('POST', `/v1/agents/${ids[1]}/rotate-key`)
    const after = (await list(app)).body.data
    expect(after).toEqual([
      before[0],
      { ...before[1], agent_key: expect.not.stringContaining(before[1].agent_key) },
      expect.objectContaining({ id: ids[2], name: 'Guide', created_at: before[2].created_at }),
    ])
  })

  test('excludes agents of other tenants', async () => {
    const app = await startApp()
    const other = await createTenant(app)
    const mine = await createAgents(app, 2)
    const theirs = await createAgents(app, 2, other)
    expect(await listIds(app)).toEqual(mine)
    expect(await listIds(app, '', other)).toEqual(theirs)
  })

  test('ignores unknown parameters', async () => {
    const app = await startApp()
    await createAgents(app, 2)
    expect((await list(app, '?page=2&_=1')).text).toBe((await list(app)).text)
  })
})

describe('the paginated agent list', () => {
  test('returns the first and last id of each page and whether more agents follow', async () => {
    const app = await startApp()
    const ids = await createAgents(app, 3)
    const page = async (query: string) => {
      const { data, ...rest } = (await list(app, query)).body
      return { ids: data.map(({ id }: { id: string }) => id), ...rest }
    }
    const [newest, middle, oldest] = ids
    expect(await page('?limit=2')).toEqual({
      object: 'list',
      ids: [newest, middle],
      first_id: newest,
      last_id: middle,
      has_more: true,
    })
    expect(await page(`?limit=2&after=${middle}`)).toMatchObject({ ids: [oldest], has_more: false })
    expect(await page('?limit=3')).toMatchObject({ ids, has_more: false })
    expect(await page(`?after=${newest}`)).toMatchObject({ ids: [middle, oldest], has_more: false })
    expect(await page(`?limit=1&before=${oldest}`)).toMatchObject({ ids: [middle], has_more: true })
    expect(await page(`?limit=1&order=asc`)).toMatchObject({ ids: [oldest], has_more: true })
    expect(await page(`?after=${newest}&before=${oldest}`)).toMatchObject({ ids: [middle], has_more: false })
    expect(await page('?order=asc')).toMatchObject({
      ids: ids.toReversed(),
      first_id: oldest,
      has_more: false,
    })
    expect(await page(`?after=${oldest}`)).toEqual({
      object: 'list',
      ids: [],
      first_id: null,
      last_id: null,
      has_more: false,
    })
  })

  test('starts after `after` and ends before `before` if both are set', async () => {
    const app = await startApp()
    const [, second, third, fourth, fifth] = await createAgents(app, 6)
    expect(await listIds(app, `?after=${second}&before=${fifth}`)).toEqual([third, fourth])
    expect(await listIds(app, `?after=${second}&before=${fifth}&limit=1`)).toEqual([third])
    expect(await listIds(app, `?after=${fifth}&before=${second}&limit=1&order=asc`)).toEqual([fourth])
    expect(await listIds(app, `?after=${fifth}&before=${second}`)).toEqual([])
  })

  test('returns every agent exactly once when it is read in either direction', async () => {
    const app = await startApp({ PARLEY_RATE_LIMIT_PARENT: '0' })
    const newestFirst = await createAgents(app, 9)
    const directions = fc.record({
      limit: fc.integer({ min: 1, max: 11 }),
      order: fc.constantFrom('asc', 'desc'),
      isForwards: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(directions, async ({ limit, order, isForwards }) => {
        const all = order === 'desc' ? newestFirst : newestFirst.toReversed()
        expect(await readAllPages(app, limit, order, isForwards, all)).toEqual(all)
      }),
      { numRuns: 40 },
    )
  })

  test.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=-1', 'limit'],
    ['limit=1.5', 'limit'],
    ['limit=1e1', 'limit'],
    ['limit=ten', 'limit'],
    ['limit=', 'limit'],
    ['limit=99999999999999999999', 'limit'],
    ['order=newest', 'order'],
    ['order=DESC', 'order'],
    ['order=', 'order'],
    ['after=', 'after'],
    ['after=agent-00000000000000000000', 'after'],
    ['before=nobody', 'before'],
    ['limit=1&limit=0', 'limit'],
  ])('returns 400 for %s with an error that names %s', async (query, field) => {
    const app = await startApp()
    const { status, body } = await list(app, `?${query}`)
    expect([status, body.code]).toEqual([400, 'invalid_value'])
    expect(body.error).toMatch(new RegExp(`^${field}: .{8}`))
  })

  test.each(['limit=1', 'limit=100', 'limit=007'])('accepts %s', async (query) => {
    const app = await startApp()
    expect((await list(app, `?${query}`)).status).toBe(200)
  })

  test.each(['after', 'before'])(
    "treats another tenant's agent in `%s` like an unknown agent",
    async (field) => {
      const app = await startApp()
      const other = await createTenant(app)
      const { agent_id } = await app.createAgent()
      const theirs = await list(app, `?${field}=${agent_id}`, other)
      const unknown = await list(app, `?${field}=agent-00000000000000000000`, other)
      expect(theirs.status).toBe(400)
      expect(theirs.text).toBe(unknown.text)
    },
  )
})

/** Reads every page, forwards from the start or backwards from the last agent. */
async function readAllPages(
  app: TestApp,
  limit: number,
  order: string,
  isForwards: boolean,
  all: readonly string[],
): Promise<string[]> {
  const listed: string[] = isForwards ? [] : all.slice(-1)
  for (;;) {
    const cursor = isForwards ? listed.at(-1) : listed[0]
    const from = cursor === undefined ? '' : `&${isForwards ? 'after' : 'before'}=${cursor}`
    const { data, has_more, first_id, last_id } = (await list(app, `?limit=${limit}&order=${order}${from}`))
      .body
    const ids: string[] = data.map(({ id }: { id: string }) => id)
    expect([first_id, last_id]).toEqual([ids[0] ?? null, ids.at(-1) ?? null])
    expect(ids.length).toBeLessThanOrEqual(limit)
    if (isForwards) listed.push(...ids)
    else listed.unshift(...ids)
    if (!has_more) return listed
    expect(ids).toHaveLength(limit)
  }
}

describe('the agent list', () => {
  const large = `${GREETER}# ${'x'.repeat(200 * 1024)}\n`

  test('limits each page to 2 MiB of definitions', async () => {
    const app = await startApp()
    const ids: string[] = []
    for (let made = 0; made < 12; made++) ids.unshift((await app.createAgent(large)).agent_id)
    for (const query of ['', '?limit=100']) {
      const { body } = await list(app, query)
      expect(body).toMatchObject({ has_more: true, first_id: ids[0], last_id: ids[9] })
      expect(body.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 10))
      const rest = await list(app, `?after=${body.last_id}`)
      expect(rest.body).toMatchObject({ has_more: false, first_id: ids[10], last_id: ids[11] })
    }
    const backwards = await list(app, `?before=${ids[11]}`)
    expect(backwards.body).toMatchObject({ has_more: true, first_id: ids[1], last_id: ids[10] })
  })

  // PostgreSQL can take longer than the default timeout to create 1,002 agents on a busy machine.
  test('contains at most 1,000 agents per page and at most PARLEY_MAX_AGENTS in total', {
    timeout: 60_000,
  }, async () => {
    const app = await startApp({ PARLEY_RATE_LIMIT_PARENT: '0', PARLEY_MAX_AGENTS: '1002' })
    const created = await createAgents(app, 1002)
    const { body } = await list(app)
    expect([body.data.length, body.has_more, body.last_id]).toEqual([1000, true, created[999]])
    const refused = await app.call('POST', '/v1/agents', { body: { yaml: GREETER } })
    expect(refused).toMatchObject({ status: 413, body: { code: 'agent_quota_exceeded' } })
    await app.call('DELETE', `/v1/agents/${created[0]}`)
    expect((await app.call('POST', '/v1/agents', { body: { yaml: GREETER } })).status).toBe(201)
    expect((await app.createAgent(GREETER, await createTenant(app))).agent_id).toMatch(/^agent-/)
  })

  test('never exceeds PARLEY_MAX_AGENTS, even when agents are created concurrently', async () => {
    const app = await startApp({ PARLEY_MAX_AGENTS: '3' })
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => app.call('POST', '/v1/agents', { body: { yaml: GREETER } })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 201, 413, 413, 413, 413, 413])
  })
})

describe('the versions of an agent', () => {
  const replace = (app: TestApp, id: string, yaml: string) =>
    app.call('PUT', `/v1/agents/${id}`, { body: { yaml } })
  const versions = async (app: TestApp, id: string, query = '') =>
    (await app.call('GET', `/v1/agents/${id}/versions${query}`)).body
  const numbers = ({ data }: { data: { version: number }[] }) => data.map(({ version }) => version)

  test('are limited to the current one and 100 earlier ones', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    for (let made = 0; made < 103; made++) await replace(app, id, `${GREETER}# ${made}\n`)
    const listed = numbers(await versions(app, id))
    expect([listed.length, listed[0], listed.at(-1)]).toEqual([101, 104, 4])
    expect((await app.call('POST', `/v1/agents/${id}/versions/3/restore`)).status).toBe(404)
  })

  test('are listed in pages of at most 2 MiB', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    for (let made = 0; made < 12; made++)
      await replace(app, id, `${GREETER}# ${made}${'x'.repeat(200 * 1024)}\n`)
    const first = await versions(app, id)
    expect([numbers(first), first.has_more]).toEqual([[13, 12, 11, 10, 9, 8, 7, 6, 5, 4], true])
    expect(first.data.map(({ current }: { current: boolean }) => current).indexOf(true)).toBe(0)
    const second = await versions(app, id, '?before=4')
    expect([numbers(second), second.has_more]).toEqual([[3, 2, 1], false])
    expect(second.data.some(({ current }: { current: boolean }) => current)).toBe(false)
    expect(numbers(await versions(app, id, '?before=99'))[0]).toBe(13)
  })
})
