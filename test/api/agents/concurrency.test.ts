/** Tests that concurrent changes to agents are never lost, duplicated or partly applied. */
import { describe, expect, test } from 'vitest'
import { deleteAgent, openAgentKey, replaceAgent, rotateAgentKey } from '../../../src/agents/agents.ts'
import { listVersions } from '../../../src/agents/list.ts'
import { serviceActor } from '../../../src/identity/audit.ts'
import { listIds } from '../../support/agents.ts'
import { type Answer, GREETER, startApp, type TestApp } from '../../support/app.ts'

const AT_ONCE = 24
const unlimited = {
  PARLEY_RATE_LIMIT_PARENT: '0',
  PARLEY_RATE_LIMIT_AGENT: '0',
  PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0',
}
const numbered = (count: number) => `name: Number ${count}\ninstructions: Say ${count}.\n`

function atOnce(call: (index: number) => Promise<Answer>, count = AT_ONCE): Promise<Answer[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => call(index)))
}

async function createAgentPath(app: TestApp): Promise<string> {
  return `/v1/agents/${(await app.createAgent(numbered(0))).agent_id}`
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)
const numerically = (a: number, b: number) => a - b

describe('the agent API during concurrent requests', () => {
  test('creates each agent with its own key', async () => {
    const app = await startApp(unlimited)
    const answers = await atOnce((index) =>
      app.call('POST', '/v1/agents', { body: { yaml: numbered(index) } }),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
    expect(new Set(answers.map(({ body }) => body.agent_key)).size).toBe(AT_ONCE)
    expect((await listIds(app)).toSorted()).toEqual(answers.map(({ body }) => body.agent_id).toSorted())
  })

  test('adds a version for each replacement without If-Match', async () => {
    const app = await startApp(unlimited)
    const path = await createAgentPath(app)
    const answers = await atOnce((index) => app.call('PUT', path, { body: { yaml: numbered(index + 1) } }))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(answers.map(({ body }) => body.version).toSorted(numerically)).toEqual(
      upTo(AT_ONCE).map((n) => n + 1),
    )
    const { data } = (await app.call('GET', `${path}/versions`)).body
    for (const { body } of answers)
      expect(data).toContainEqual(expect.objectContaining({ version: body.version, name: body.name }))
    expect(data).toHaveLength(AT_ONCE + 1)
    expect((await app.call('GET', path)).body.definition.name).toBe(data[0].name)
  })

  test('replaces an agent exactly once if all requests have the same If-Match', async () => {
    const app = await startApp(unlimited)
    const path = await createAgentPath(app)
    const headers = { 'If-Match': '"1"' }
    const answers = await atOnce((index) =>
      app.call('PUT', path, { headers, body: { yaml: numbered(index + 1) } }),
    )
    const [won, ...others] = answers.filter(({ status }) => status === 200)
    expect(others).toEqual([])
    expect(answers.filter(({ status }) => status === 412)).toHaveLength(AT_ONCE - 1)
    expect((await app.call('GET', path)).body).toMatchObject({
      version: 2,
      definition: { name: won?.body.name },
    })
  })

  test('accepts all replacements with `If-Match: *`', async () => {
    const app = await startApp(unlimited)
    const path = await createAgentPath(app)
    const options = { headers: { 'If-Match': '*' }, body: { yaml: GREETER } }
    const answers = await atOnce(() => app.call('PUT', path, options))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  })

  test('adds a version for each restore', async () => {
    const app = await startApp(unlimited)
    const path = await createAgentPath(app)
    await app.call('PUT', path, { body: { yaml: numbered(1) } })
    const answers = await atOnce((index) => app.call('POST', `${path}/versions/${1 + (index % 2)}/restore`))
    for (const [index, { status, body }] of answers.entries())
      expect([status, body.name]).toEqual([200, `Number ${index % 2}`])
    expect((await app.call('GET', `${path}/versions`)).body.data).toHaveLength(AT_ONCE + 2)
  })

  test('deletes an agent exactly once', async () => {
    const app = await startApp(unlimited)
    const path = await createAgentPath(app)
    const answers = await atOnce(() => app.call('DELETE', path))
    expect(answers.map(({ status }) => status).toSorted(numerically)).toEqual([
      200,
      ...Array(AT_ONCE - 1).fill(404),
    ])
  })

  test('leaves no agent, version or key behind if an agent is deleted during a replacement', async () => {
    const app = await startApp(unlimited)
    const path = await createAgentPath(app)
    const answers = await atOnce((index) =>
      index === AT_ONCE / 2 ? app.call('DELETE', path) : app.call('PUT', path, { body: { yaml: GREETER } }),
    )
    for (const { status } of answers) expect([200, 404]).toContain(status)
    expect((await app.call('GET', path)).status).toBe(404)
    const { db } = app.service.deps
    expect(await db.selectFrom('agent_versions').selectAll().execute()).toEqual([])
    expect(await db.selectFrom('credentials').select('kind').execute()).toEqual([{ kind: 'parent' }])
  })

  test('leaves only the listed key valid after several rotations', async () => {
    const app = await startApp(unlimited)
    const path = await createAgentPath(app)
    const rotations = await atOnce(() => app.call('POST', `${path}/rotate-key`))
    const keys: string[] = rotations.map(({ body }) => body.agent_key)
    expect(new Set(keys).size).toBe(AT_ONCE)
    const shown = (await app.call('GET', '/v1/agents')).body.data[0].agent_key
    const answers = await Promise.all(keys.map((key) => app.call('GET', '/v1/agents/me', { key })))
    expect(keys.filter((_, index) => answers[index]?.status === 200)).toEqual([shown])
  })

  test('applies all key rotations and replacements of an agent', async () => {
    const app = await startApp(unlimited)
    const path = await createAgentPath(app)
    const answers = await atOnce((index) =>
      index % 2 === 0
        ? app.call('POST', `${path}/rotate-key`)
        : app.call('PUT', path, { body: { yaml: numbered(index) } }),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const shown = (await app.call('GET', '/v1/agents')).body.data[0].agent_key
    expect((await app.call('GET', '/v1/agents/me', { key: shown })).status).toBe(200)
    expect((await app.call('GET', path)).body.version).toBe(1 + AT_ONCE / 2)
  })

  test('rejects an agent key with 401 as soon as the request that deletes its agent has returned', async () => {
    const app = await startApp(unlimited)
    const { agent_id, agent_key } = await app.createAgent()
    const askMe = () => app.call('GET', '/v1/agents/me', { key: agent_key })
    await askMe()
    const during = atOnce(askMe)
    await app.call('DELETE', `/v1/agents/${agent_id}`)
    const after = await atOnce(askMe)
    expect(new Set(after.map(({ status }) => status))).toEqual(new Set([401]))
    for (const { status } of await during) expect([200, 401, 404]).toContain(status)
  })
})

/** Calls the functions directly because HTTP requests to one server do not interleave their queries. */
describe('agent operations with interleaved queries', () => {
  async function startWithAgent() {
    const app = await startApp(unlimited)
    const { agent_id } = await app.createAgent(numbered(1))
    const { deps } = app.service
    const owner = app.key.slice('svc_'.length, 'svc_'.length + 12)
    const replace = (count: number, ifMatch?: string) =>
      replaceAgent(
        deps,
        serviceActor,
        owner,
        agent_id,
        { yaml: numbered(count), format: 'yaml' },
        { ifMatch },
      )
    return { app, deps, owner, agent_id, replace }
  }

  test('add a version for each replacement without If-Match', async () => {
    const { app, agent_id, replace } = await startWithAgent()
    const written = await Promise.all(upTo(AT_ONCE).map((count) => replace(count)))
    const { data } = (await app.call('GET', `/v1/agents/${agent_id}/versions`)).body
    for (const { row } of written)
      expect(data).toContainEqual(expect.objectContaining({ version: row.version, yaml: row.source }))
    expect(data.map(({ version }: { version: number }) => version)).toEqual(upTo(AT_ONCE + 1).reverse())
  })

  test('replace an agent exactly once if all calls have the same If-Match', async () => {
    const { app, agent_id, replace } = await startWithAgent()
    const outcomes = await Promise.allSettled(upTo(AT_ONCE).map((count) => replace(count, '"1"')))
    const rejected = outcomes.filter((outcome) => outcome.status === 'rejected')
    expect(rejected).toHaveLength(AT_ONCE - 1)
    for (const { reason } of rejected) expect(reason).toMatchObject({ reason: 'precondition_failed' })
    expect((await app.call('GET', `/v1/agents/${agent_id}/versions`)).body.data).toHaveLength(2)
  })

  test('list each version only once during a replacement', async () => {
    const { deps, owner, agent_id, replace } = await startWithAgent()
    const [, { versions }] = await Promise.all([replace(2), listVersions(deps, owner, agent_id)])
    expect([[1], [2, 1]]).toContainEqual(versions.map(({ version }) => version))
  })

  test('keep the new key if a replacement and a rotation overlap', async () => {
    const { app, deps, owner, agent_id, replace } = await startWithAgent()
    const [before] = (await app.call('GET', '/v1/agents')).body.data
    const [replaced, rotation] = await Promise.all([
      replace(2),
      rotateAgentKey(deps, serviceActor, owner, agent_id, 0),
    ])
    const [listed] = (await app.call('GET', '/v1/agents')).body.data
    expect(listed).toMatchObject({ name: 'Number 2', agent_key: rotation.key.text })
    expect([before.agent_key, rotation.key.text]).toContain(openAgentKey(deps, replaced))
  })

  test('leave no agent or version behind if a replacement and a deletion overlap', async () => {
    const { app, deps, owner, agent_id, replace } = await startWithAgent()
    const [replaced] = await Promise.allSettled([
      replace(2),
      deleteAgent(deps, serviceActor, owner, agent_id),
    ])
    if (replaced?.status === 'rejected') expect(replaced.reason).toMatchObject({ reason: 'not_found' })
    expect((await app.call('GET', `/v1/agents/${agent_id}`)).status).toBe(404)
    expect(await deps.db.selectFrom('agent_versions').selectAll().execute()).toEqual([])
  })
})
