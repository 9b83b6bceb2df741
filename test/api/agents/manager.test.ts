/** Tests that each agent route has an equivalent console route under /v1/manager, for users and for keys. */
import { describe, expect, test } from 'vitest'
import { restOperations } from '../../../src/server/api.ts'
import { createTenant } from '../../support/agents.ts'
import { type Answer, type CallOptions, startApp, type TestApp } from '../../support/app.ts'
import { asUser, behindProxy, claimKey } from '../../support/console.ts'

const ada = 'ada@example.org'
const yaml = 'name: Guide\ninstructions: Help.\n'
const operations = restOperations
const originals = operations.filter(
  ({ id, auth }) => id.startsWith('agents-') && auth.callers.includes('parent'),
)

/**
 * Returns the request for an operation on the agent, with its public path and its console path (`mirrored`).
 */
function toRequest({ http, request }: (typeof operations)[number], agentId: string) {
  const path = http.path.replace('{agent_id}', agentId).replace('{version}', '1')
  const takesBody = http.method === 'POST' || http.method === 'PUT'
  const options: CallOptions = takesBody ? { body: request?.body === 'definition' ? { yaml } : {} } : {}
  return { method: http.method, path, mirrored: path.replace('/v1/', '/v1/manager/'), options }
}

/** Returns the parts of a response that are the same for every agent. */
function summarize({ status, headers, body }: Answer) {
  const kept = ['etag', 'content-type', 'cache-control', 'x-ratelimit-limit']
  return { status, headers: kept.map((name) => headers.get(name)), fields: Object.keys(body) }
}

/** Starts a service and claims its parent key for Ada. */
async function start(): Promise<TestApp> {
  const app = await startApp(behindProxy)
  await claimKey(app, ada, app.key)
  return app
}

test('every agent route for owners has a console route, and other agent routes do not', () => {
  expect(originals.length).toBeGreaterThanOrEqual(8)
  const routesOf = ({ http }: (typeof operations)[number]) => `${http.method} ${http.path}`
  const mirrors = operations.filter(({ id }) => id.startsWith('manager-agents-'))
  expect(mirrors.map(routesOf)).toEqual(originals.map((one) => routesOf(one).replace('/v1/', '/v1/manager/')))
})

describe.each(originals)('$http.method $http.path', (operation) => {
  test('returns the same status, headers and fields on the console route, for keys and for users', async () => {
    const app = await start()
    const ask = async (place: 'path' | 'mirrored', credential: (options: CallOptions) => CallOptions) => {
      const { agent_id: id } = await app.createAgent(yaml)
      const request = toRequest(operation, id)
      const answer = await app.call(request.method, request[place], credential(request.options))
      return summarize(answer)
    }
    const here = await ask('path', (options) => options)
    expect(await ask('mirrored', (options) => options)).toEqual(here)
    expect(await ask('mirrored', (options) => asUser(ada, options))).toEqual(here)
  })

  test('does not reveal the agent to other callers of the console route', async () => {
    const app = await start()
    const { agent_id: id, agent_key: agentKey } = await app.createAgent(yaml)
    const { method, mirrored, options } = toRequest(operation, id)
    const isAboutOne = mirrored.includes(id)
    const other = { ...options, key: await createTenant(app) }
    for (const foreign of [other, asUser('eve@example.org', options)]) {
      const { status, body } = await app.call(method, mirrored, foreign)
      const error = mirrored.includes('/bin/') ? 'This agent is not in the bin.' : 'Agent not found.'
      if (isAboutOne) expect([status, body]).toEqual([404, { error, code: 'not_found' }])
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

test('an agent created on the console route is available in the public API', async () => {
  const app = await start()
  const { body: created } = await app.call('POST', '/v1/manager/agents', asUser(ada, { body: { yaml } }))
  expect(created.parent_key).toBe(app.key.slice(0, 16))
  const path = `agents/${created.agent_id}`
  const change = asUser(ada, {
    body: { yaml: yaml.replace('Guide', 'Leader') },
    headers: { 'If-Match': '"1"' },
  })
  expect((await app.call('PUT', `/v1/manager/${path}`, change)).status).toBe(200)
  expect((await app.call('PUT', `/v1/manager/${path}`, change)).status).toBe(412)
  expect((await app.call('GET', `/v1/${path}`)).body).toMatchObject({
    definition: { name: 'Leader' },
    version: 2,
  })
  expect((await app.call('GET', `/v1/manager/${path}/versions`, asUser(ada))).body.data).toHaveLength(2)
  const list = await app.call('GET', '/v1/manager/agents?limit=1', asUser(ada))
  expect(list.body).toMatchObject({ data: [{ id: created.agent_id }], has_more: false })
  expect((await app.call('DELETE', `/v1/manager/${path}`, asUser(ada))).body).toEqual({
    id: created.agent_id,
    deleted: true,
  })
  expect((await app.call('GET', `/v1/${path}`)).status).toBe(404)
})
