/** Tests tRPC inputs that the official client encodes with superjson, and hostile variants of them. */
import { createTRPCClient, httpBatchLink, httpBatchStreamLink, splitLink } from '@trpc/client'
import superjson from 'superjson'
import { describe, expect, test } from 'vitest'
import type { ChatRequest } from '../../../src/providers/chat-api.ts'
import type { AppRouter } from '../../../src/server/api.ts'
import { type Answer, startApp, type TestApp } from '../../support/app.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'
import { createTypedClient } from '../../support/rpc.ts'

const harness = await startChatHarness()

describe('a tRPC input with costly superjson metadata', () => {
  /** Returns lists that each refer to the next one twice, so they expand to 2 ** levels values. */
  function graphBomb(levels: number) {
    const json: Record<string, unknown> = { link: 'x' }
    const referentialEqualities: Record<string, string[]> = {}
    for (let level = 0; level <= levels; level++) json[`l${level}`] = [0, 0]
    for (let level = 0; level < levels; level++)
      referentialEqualities[`l${level}`] = [`l${level + 1}.0`, `l${level + 1}.1`]
    return { json, meta: { referentialEqualities, v: 1 } }
  }

  /** Returns a set of `count` members and a reference to each member. */
  function manyMembers(count: number) {
    const members = Array.from({ length: count }, (_, index) => [index])
    const referentialEqualities = Object.fromEntries(members.map((_, index) => [`s.${index}`, ['link']]))
    return { json: { link: 'x', s: members }, meta: { values: { s: ['set'] }, referentialEqualities, v: 1 } }
  }

  /** Returns a call's status and CPU time in milliseconds; the server runs in this process. */
  async function measure(call: () => Promise<Answer>) {
    const before = process.cpuUsage()
    const { status } = await call()
    const { user, system } = process.cpuUsage(before)
    return { status, cpuMs: (user + system) / 1_000 }
  }

  const get = (app: TestApp, name: string, input: object, key: string | null) =>
    app.call('GET', `/trpc/${name}?input=${encodeURIComponent(JSON.stringify(input))}`, { key })
  const post = (app: TestApp, name: string, input: object, key: string | null) =>
    app.call('POST', `/trpc/${name}`, { key, body: input })

  const calls: [who: string, name: string, send: typeof get][] = [
    ['anonymous', 'artifacts.capabilities', get],
    ['anonymous', 'manager.signIn', post],
    ['agent', 'models.list', get],
    ['agent', 'chat.stream', post],
    ['parent', 'models.list', get],
    ['parent', 'agents.create', post],
  ]

  test.each(calls)('uses little CPU time (caller: %s, procedure: %s)', async (who, name, send) => {
    const app = await startApp()
    const { agent_key: agentKey } = await app.createAgent()
    const key = who === 'anonymous' ? null : who === 'agent' ? agentKey : app.key
    const inputs = [graphBomb(40), ...(send === post ? [manyMembers(15_000)] : [])]
    for (const input of inputs) {
      const { status, cpuMs } = await measure(() => send(app, name, input, key))
      expect(status).toBeLessThan(500)
      expect(cpuMs).toBeLessThan(1_000)
    }
    expect((await app.call('GET', '/healthz')).status).toBe(200)
  })

  test('is rejected with 400 if it has 15,000 paths', async () => {
    const app = await startApp()
    const fields = Array.from({ length: 15_000 }, (_, index) => `f${index}`)
    const json = Object.fromEntries(fields.map((field) => [field, null]))
    const values = Object.fromEntries(fields.map((field) => [field, ['undefined']]))
    const answer = await app.call('POST', '/trpc/agents.create', { body: { json, meta: { values, v: 1 } } })
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { json: { data: { reason: 'invalid_value', httpStatus: 400 } } } },
    })
  })
})

describe('the official tRPC client with superjson', () => {
  /** Creates a client as described in the tRPC documentation. */
  function createSuperjsonClient(app: TestApp) {
    const options = {
      url: `${app.url}/trpc`,
      transformer: superjson,
      headers: { Authorization: `Bearer ${app.key}` },
    }
    return createTRPCClient<AppRouter>({
      links: [
        splitLink({
          condition: ({ path }) => path.startsWith('chat.'),
          true: httpBatchStreamLink(options),
          false: httpBatchLink(options),
        }),
      ],
    })
  }

  /** Sends a chat and returns the request that the provider receives. */
  async function send(text: string, more: object) {
    const client = createSuperjsonClient(await harness.start())
    for await (const _ of await client.chat.stream.mutate(chatRequest(text, more) as ChatRequest));
    return (await harness.upstream.waitForRequest(text)).body as Record<string, unknown>
  }

  test('can send undefined fields, undefined inputs and batches', async () => {
    const client = createSuperjsonClient(await startApp())
    const lists = await Promise.all([
      client.agents.list.query({ limit: undefined, after: undefined }),
      client.agents.list.query(undefined),
      client.agents.list.query(),
    ])
    expect(lists.map(({ data }) => data)).toEqual([[], [], []])
  })

  test('can send dates and URLs, which the server receives in their JSON.stringify form', async () => {
    const metadata = { when: new Date(0), where: new URL('https://a.example/'), 'a.b\\c': undefined }
    const sent = { temperature: -0, top_p: undefined, stop: undefined, metadata }
    expect(await send('annotated', sent)).toMatchObject(JSON.parse(JSON.stringify(sent)))
    expect(await send('left out', sent)).not.toHaveProperty('top_p')
    expect((await send('odd key', sent)).metadata).toEqual({
      when: '1970-01-01T00:00:00.000Z',
      where: 'https://a.example/',
    })
  })

  test('can send an object that occurs twice in the input', async () => {
    const message = { role: 'user', content: 'said twice' }
    expect((await send('said twice', { messages: [message, message] })).messages).toEqual([message, message])
  })

  test.each<[what: string, value: unknown]>([
    ['a set', new Set([1])],
    ['a map', new Map([[1, 2]])],
    ['a regular expression', /a/],
    ['an error', new Error('a')],
    ['a bigint', 1n],
    ['bytes', new Uint8Array(3)],
    ['a circular object', makeCircle()],
  ])('receives 400 for %s', async (_what, value) => {
    const app = await startApp()
    const failure = await createSuperjsonClient(app)
      .agents.create.mutate({ yaml: 'name: A\ninstructions: B.\n', value } as { yaml: string })
      .catch((thrown: unknown) => thrown)
    expect(failure).toMatchObject({ data: { httpStatus: 400, reason: 'invalid_value' } })
  })

  function makeCircle(): object {
    const circle: { self?: object } = {}
    circle.self = circle
    return { inner: circle }
  }
})

describe('invalid superjson metadata', () => {
  const json = { limit: 1, constructor: { name: 'x' } }

  test.each<[what: string, meta: unknown]>([
    ['is text', 'undefined'],
    ['has values as text', { values: 'undefined' }],
    ['has a path through a prototype', { values: { '__proto__.x': ['undefined'] } }],
    ['has a path through a constructor', { values: { 'limit.constructor': ['undefined'] } }],
    ['has a path through an inherited field', { values: { 'constructor.toString': ['undefined'] } }],
    ['has a path to a missing field', { values: { nowhere: ['undefined'] } }],
    ['has an unknown type', { values: { limit: ['toString'] } }],
    ['has a type inside a type', { values: { limit: ['undefined', { a: ['undefined'] }] } }],
    ['names a class', { values: [['class', 'X']] }],
    ['has equalities as text', { referentialEqualities: 'limit' }],
    ['has equalities that are not lists', { referentialEqualities: { limit: 'limit' } }],
    ['has equalities with numeric paths', { referentialEqualities: { limit: [1] } }],
    ['makes the input contain itself', { referentialEqualities: [['limit']] }],
  ])('is rejected with 400 if it %s', async (_what, meta) => {
    const app = await startApp()
    const input = encodeURIComponent(JSON.stringify({ json, meta }))
    const answer = await app.call('GET', `/trpc/agents.list?input=${input}`)
    expect(answer).toMatchObject({
      status: 400,
      body: {
        error: { json: { message: expect.stringMatching(/^meta /), data: { reason: 'invalid_value' } } },
      },
    })
    expect(Object.hasOwn(Object.prototype, 'x')).toBe(false)
  })
})

test.each(['constructor', 'prototype'])(
  'an agent with a tool parameter named %s can be read',
  async (name) => {
    const app = await startApp()
    const tool = `{ name: pick, description: Picks., inputSchema: { type: object, properties: { ${name}: { type: string } } } }`
    const { agent_id: id, agent_key: key } = await app.createAgent(
      `name: Picker\ninstructions: Pick.\ntools: [${tool}]\n`,
    )
    const client = createTypedClient(app)
    const { data } = await client.agents.list.query({})
    expect(data.map((agent) => agent.id)).toEqual([id])
    expect(JSON.stringify(await client.agents.get.query({ agent_id: id }))).toContain(name)
    expect((await createTypedClient(app, key).agents.me.query({})).id).toBe(id)
  },
)
