/** The agents of the console: every operation of an owner, at a second place, for users as for keys. */
import { describe, expect, test } from 'vitest'
import { restOperations } from '../../../src/server/api.ts'
import { createTenant } from '../../support/agents.ts'
import { type Answer, type CallOptions, startApp, type TestApp } from '../../support/app.ts'
import { as, claim, proxied } from '../../support/console.ts'

const ada = 'ada@example.org'
const yaml = 'name: Guide\ninstructions: Help.\n'
const operations = restOperations
const originals = operations.filter(
  ({ id, wire }) => id.startsWith('agents-') && wire.callers.includes('parent'),
)

/** Where an operation on that agent lies, and what it is sent. */
function toRequest({ http, wire }: (typeof operations)[number], agentId: string) {
  const path = http.path.replace('{agent_id}', agentId).replace('{version}', '1')
  const takesBody = http.method === 'POST' || http.method === 'PUT'
  const options: CallOptions = takesBody ? { body: wire.body === 'definition' ? { yaml } : {} } : {}
  return { method: http.method, path, mirrored: path.replace('/v1/', '/v1/manager/'), options }
}

/** What an answer is like, whichever agent it is about. */
function look({ status, headers, body }: Answer) {
  const kept = ['etag', 'content-type', 'cache-control', 'x-ratelimit-limit']
  return { status, headers: kept.map((name) => headers.get(name)), fields: Object.keys(body) }
}

/** A service whose parent key is the user's. */
async function start(): Promise<TestApp> {
  const app = await startApp(proxied)
  await claim(app, ada, app.key)
  return app
}

test('every operation of an owner has its second place, and no other has one', () => {
  expect(originals.length).toBeGreaterThanOrEqual(8)
  const places = ({ http }: (typeof operations)[number]) => `${http.method} ${http.path}`
  const mirrors = operations.filter(({ id }) => id.startsWith('manager-agents-'))
  expect(mirrors.map(places)).toEqual(originals.map((one) => places(one).replace('/v1/', '/v1/manager/')))
})

describe.each(originals)('$http.method $http.path', (operation) => {
  test('answers a key and a user there as it answers a key here', async () => {
    const app = await start()
    const ask = async (place: 'path' | 'mirrored', credential: (options: CallOptions) => CallOptions) => {
      const { agent_id: id } = await app.createAgent(yaml)
      const request = toRequest(operation, id)
      const answer = await app.call(request.method, request[place], credential(request.options))
      return look(answer)
    }
    const here = await ask('path', (options) => options)
    expect(await ask('mirrored', (options) => options)).toEqual(here)
    expect(await ask('mirrored', (options) => as(ada, options))).toEqual(here)
  })

  test('is not there for anybody else', async () => {
    const app = await start()
    const { agent_id: id, agent_key: agentKey } = await app.createAgent(yaml)
    const { method, mirrored, options } = toRequest(operation, id)
    const isAboutOne = mirrored.includes(id)
    const other = { ...options, key: await createTenant(app) }
    for (const foreign of [other, as('eve@example.org', options)]) {
      const { status, body } = await app.call(method, mirrored, foreign)
      if (isAboutOne) expect([status, body]).toEqual([404, { error: 'Agent not found.', code: 'not_found' }])
      else expect(status).toBeLessThan(300)
    }
    for (const key of [null, agentKey, 'svc_nonsense']) {
      const { status, body } = await app.call(method, mirrored, { ...options, key })
      expect([status, typeof body.error]).toEqual([401, 'string'])
    }
    const { body } = await app.call('GET', '/v1/agents')
    expect(body.data.map((agent: { id: string }) => agent.id)).toEqual([id])
  })
})

test('what a user makes there is the same agent here', async () => {
  const app = await start()
  const { body: created } = await app.call('POST', '/v1/manager/agents', as(ada, { body: { yaml } }))
  expect(created.parent_key).toBe(app.key.slice(0, 16))
  const path = `agents/${created.agent_id}`
  const change = as(ada, { body: { yaml: yaml.replace('Guide', 'Leader') }, headers: { 'If-Match': '"1"' } })
  expect((await app.call('PUT', `/v1/manager/${path}`, change)).status).toBe(200)
  expect((await app.call('PUT', `/v1/manager/${path}`, change)).status).toBe(412)
  expect((await app.call('GET', `/v1/${path}`)).body).toMatchObject({
    definition: { name: 'Leader' },
    version: 2,
  })
  expect((await app.call('GET', `/v1/manager/${path}/versions`, as(ada))).body.data).toHaveLength(2)
  const list = await app.call('GET', '/v1/manager/agents?limit=1', as(ada))
  expect(list.body).toMatchObject({ data: [{ id: created.agent_id }], has_more: false })
  expect((await app.call('DELETE', `/v1/manager/${path}`, as(ada))).body).toEqual({
    id: created.agent_id,
    deleted: true,
  })
  expect((await app.call('GET', `/v1/${path}`)).status).toBe(404)
})
