/** Tests concurrent requests to two servers that share a PostgreSQL database. */
import { describe, expect, test, vi } from 'vitest'
import { setBudget } from '../../src/budgets/token-budgets.ts'
import { serviceActor } from '../../src/identity/audit.ts'
import { rotateParentKey } from '../../src/identity/keys.ts'
import { createSignInLink, signIn } from '../../src/identity/sessions.ts'
import { GREETER, startApp, type TestApp } from '../support/app.ts'
import { publicIdOf } from '../support/audit.ts'
import { asUser, behindProxy } from '../support/console.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { createUpload, patchUpload, postUpload } from '../support/uploads.ts'

vi.setConfig({ testTimeout: 120_000 })

const PARLEY_SECRET = 'the secret that both servers share'

/** Starts two servers that share a database and a parent key. */
async function startTwo(env: Record<string, string> = {}): Promise<[one: TestApp, other: TestApp]> {
  const shared = { ...env, PARLEY_SECRET, DATABASE_URL: await createTestDatabase() }
  const one = await startApp(shared)
  return [one, await startApp({ ...shared, PARLEY_PARENT_KEY: one.key })]
}

/** Starts `times` concurrent calls of `act`, which alternate between the servers. */
function byTurns<T>(
  apps: readonly TestApp[],
  times: number,
  act: (app: TestApp, index: number) => Promise<T>,
) {
  const pick = (index: number) => apps[index % apps.length] as TestApp
  return Promise.all(Array.from({ length: times }, (_, index) => act(pick(index), index)))
}

const count = (statuses: readonly number[], wanted: number) =>
  statuses.filter((status) => status === wanted).length

describe('concurrent agent requests', () => {
  test('that replace an agent create versions with unique numbers', async () => {
    const apps = await startTwo()
    const { agent_id: id } = await apps[0].createAgent()
    const answers = await byTurns(apps, 12, (app, index) =>
      app.call('PUT', `/v1/agents/${id}`, {
        body: GREETER.replace('Greeter', `Greeter ${index}`),
        headers: { 'Content-Type': 'application/yaml' },
      }),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200))
    const { data } = (await apps[1].call('GET', `/v1/agents/${id}/versions`)).body
    expect(data.map(({ version }: { version: number }) => version)).toEqual(
      Array.from({ length: 13 }, (_, index) => 13 - index),
    )
  })

  test('that replace the same version with If-Match succeed only once', async () => {
    const apps = await startTwo()
    const { agent_id: id } = await apps[0].createAgent()
    const answers = await byTurns(apps, 8, (app) =>
      app.call('PUT', `/v1/agents/${id}`, {
        body: GREETER,
        headers: { 'Content-Type': 'application/yaml', 'If-Match': '"1"' },
      }),
    )
    const statuses = answers.map(({ status }) => status)
    expect([count(statuses, 200), count(statuses, 412)]).toEqual([1, 7])
  })

  test('that create agents in the same microsecond do not affect pagination', async () => {
    const [app] = await startTwo()
    const { db } = app.service.deps
    for (let made = 0; made < 5; made++) await app.createAgent()
    await db.updateTable('agents').set({ position: 1_795_303_380_786_000 }).execute()
    const seen: string[] = []
    for (let query = '?limit=2'; ; ) {
      const { data, has_more } = (await app.call('GET', `/v1/agents${query}`)).body
      seen.push(...data.map(({ id }: { id: string }) => id))
      if (!has_more) break
      query = `?limit=2&after=${seen.at(-1)}`
    }
    expect(new Set(seen).size).toBe(5)
    expect(seen).toHaveLength(5)
  })
})

describe('concurrent key and user requests', () => {
  test('that rotate a key leave only one valid secret', async () => {
    const apps = await startTwo()
    const id = publicIdOf(apps[0].key)
    await byTurns(apps, 10, ({ service }) => rotateParentKey(service.deps, serviceActor, id, 0))
    const { db } = apps[0].service.deps
    const live = db.selectFrom('credentials').select('digest').where('valid_until', 'is', null)
    expect(await live.execute()).toHaveLength(1)
  })

  test('by a new user create only one user and one key', async () => {
    const apps = await startTwo(behindProxy)
    const answers = await byTurns(apps, 8, (app) =>
      app.call('GET', '/v1/manager/me', asUser('ada@example.org')),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
    const { db } = apps[0].service.deps
    expect(await db.selectFrom('users').select('email').execute()).toEqual([{ email: 'ada@example.org' }])
    const automatic = db.selectFrom('parent_keys').select('id').where('is_automatic', '=', 1)
    expect(await automatic.execute()).toHaveLength(1)
  })

  test('that claim a key also move agents that are being created to that key', async () => {
    const apps = await startTwo(behindProxy)
    const ada = (options = {}) => asUser('ada@example.org', options)
    await apps[0].call('GET', '/v1/manager/me', ada())
    const made = byTurns(apps, 10, (app) =>
      app.call('POST', '/v1/manager/agents', ada({ body: { yaml: GREETER } })),
    )
    const claimed = apps[1].call('POST', '/v1/manager/claim-key', ada({ body: { parent_key: apps[0].key } }))
    expect((await claimed).status).toBe(200)
    const statuses = (await made).map(({ status }) => status)
    const { db } = apps[0].service.deps
    const owners = await db.selectFrom('agents').select('parent_key_id').execute()
    expect(owners).toHaveLength(count(statuses, 201))
    expect(new Set(owners.map((row) => row.parent_key_id))).toEqual(new Set([publicIdOf(apps[0].key)]))
  })

  test('with the same sign-in link succeed only once', async () => {
    const apps = await startTwo()
    const { text } = await createSignInLink(apps[0].service.deps, serviceActor)
    const trace = { requestId: 'one', clientAddress: '127.0.0.1' }
    const results = await Promise.allSettled(
      [0, 1, 2, 3, 4, 5].map((index) => signIn((apps[index % 2] as TestApp).service.deps, text, trace)),
    )
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const { db } = apps[0].service.deps
    expect(await db.selectFrom('sessions').select('digest').execute()).toHaveLength(1)
  })
})

describe('limits on concurrent requests', () => {
  test('prevent concurrent uploads from exceeding the storage quota', async () => {
    const apps = await startTwo({ PARLEY_STORAGE_QUOTA_BYTES: '1000' })
    const answers = await byTurns(apps, 10, (app) => postUpload(app, { size: 300 }))
    const statuses = answers.map(({ status }) => status)
    expect([count(statuses, 201), count(statuses, 413)]).toEqual([3, 7])
  })

  test('prevent concurrent calls from exceeding the token budget, and all calls are recorded', async () => {
    const apps = await startTwo({ PARLEY_BUDGET_WAIT_SECONDS: '0' })
    const { deps } = apps[0].service
    const owner = { kind: 'parent', tenantId: publicIdOf(apps[0].key) } as const
    // Each reservation is for 100 output tokens and 15 input tokens, one for each byte of `{"messages":[]}`.
    await setBudget(deps, serviceActor, owner, { day: 10 * 115, month: 1_000_000 })
    apps[1].service.deps.usage.invalidate()
    const call = {
      ...{ requestId: 'one', tenantId: owner.tenantId, agentId: undefined, provider: 'mock', model: 'mock' },
      operation: 'chat' as const,
      ...{ isStreamed: false, request: { messages: [], max_tokens: 100 } },
    }
    const begun = await Promise.allSettled(
      Array.from({ length: 30 }, async (_, index) => {
        const record = (apps[index % 2] as TestApp).service.deps.usage.begin(call)
        await record.reserve(call.request)
        return record
      }),
    )
    const bookings = begun.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    expect(bookings).toHaveLength(10)
    await Promise.all(
      bookings.map((booking) => {
        booking.used({ prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 })
        return booking.end('ok')
      }),
    )
    const counters = deps.db.selectFrom('budget_counters').select(['booked', 'reserved'])
    expect(await counters.execute()).toEqual(Array(2).fill({ booked: 70, reserved: 0 }))
    await Promise.all(apps.map(({ service }) => service.deps.usage.flush()))
    const days = deps.db
      .selectFrom('usage_days')
      .select(['requests', 'completion_tokens', 'latency_histogram'])
    const [day] = await days.execute()
    expect([day?.requests, day?.completion_tokens]).toEqual([10, 40])
    const timed = Object.values(JSON.parse(day?.latency_histogram ?? '{}') as Record<string, number>)
    expect(timed.reduce((sum, one) => sum + one, 0)).toBe(10)
  })

  test('are replaced as a whole, not merged, when they are set concurrently', async () => {
    const apps = await startTwo()
    const owner = { kind: 'parent', tenantId: publicIdOf(apps[0].key) } as const
    const budgets = [{ day: 10 }, { month: 20 }]
    await byTurns(apps, 10, ({ service }, index) =>
      setBudget(service.deps, serviceActor, owner, budgets[index % 2] ?? {}),
    )
    const rows = apps[0].service.deps.db.selectFrom('budgets').select(['period', 'amount'])
    expect([[{ period: 'day', amount: 10 }], [{ period: 'month', amount: 20 }]]).toContainEqual(
      await rows.execute(),
    )
  })
})

describe('concurrent uploads', () => {
  test('with the same id on two servers create only one artifact', async () => {
    const apps = await startTwo()
    const metadata = { artifactId: '0b6b9b2e-2f5b-4d8e-9c1e-6a1f0f3d2c4b' }
    const answers = await byTurns(apps, 8, (app) => postUpload(app, { metadata }))
    // A repeated creation by the same tenant succeeds.
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(201))
    const paths = answers.map(({ headers }) => new URL(headers.get('location') ?? '', apps[0]?.url).pathname)
    expect(new Set(paths).size).toBe(1)
    const { db } = (apps[0] as (typeof apps)[number]).service.deps
    expect(await db.selectFrom('artifacts').select('id').execute()).toHaveLength(1)
  })

  test('have only one writer at a time and are processed once', async () => {
    const hooked: string[] = []
    const onUploadComplete = async ({ artifactId }: { artifactId: string }) => void hooked.push(artifactId)
    const shared = { PARLEY_SECRET, DATABASE_URL: await createTestDatabase() }
    const one = await startApp(shared, { onUploadComplete })
    const other = await startApp({ ...shared, PARLEY_PARENT_KEY: one.key }, { onUploadComplete })
    // The data directories differ, so each upload must be written to the server where it began.
    const begun = await byTurns([one, other], 6, async (app) => ({ app, upload: await createUpload(app) }))
    const answers = await Promise.all(
      begun.flatMap(({ app, upload }) =>
        [0, 1, 2].map(() => patchUpload(app, upload, 0, Buffer.from('0123456789'))),
      ),
    )
    expect(
      count(
        answers.map(({ status }) => status),
        204,
      ),
    ).toBe(6)
    const { db } = one.service.deps
    const unfinished = db.selectFrom('artifacts').select('id').where('received_bytes', '<', 10)
    expect(await unfinished.execute()).toEqual([])
    await expect.poll(() => hooked.toSorted()).toEqual(begun.map(({ upload }) => upload.id).toSorted())
  })
})
