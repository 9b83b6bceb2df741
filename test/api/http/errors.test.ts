/** Tests that every error reason has the documented status, type and format in each API. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Reason, reasons, ServiceError } from '../../../src/lib/errors.ts'
import { renderError } from '../../../src/operations/errors.ts'
import { type Answer, startApp, type TestApp } from '../../support/app.ts'
import { createLineLog } from '../../support/log-lines.ts'
import { callProcedure } from '../../support/rpc.ts'

/** The documented HTTP status and error type for each error reason. */
const statuses: Readonly<Record<Reason, readonly [status: number, type: string]>> = {
  missing_api_key: [401, 'authentication_error'],
  invalid_api_key: [401, 'authentication_error'],
  identity_invalid: [401, 'authentication_error'],
  identity_expired: [401, 'authentication_error'],
  insufficient_permissions: [403, 'permission_error'],
  model_not_allowed: [403, 'permission_error'],
  model_not_priced: [403, 'permission_error'],
  content_not_priced: [403, 'permission_error'],
  invalid_value: [400, 'invalid_request_error'],
  not_found: [404, 'invalid_request_error'],
  model_not_found: [404, 'invalid_request_error'],
  conflict: [409, 'invalid_request_error'],
  method_not_allowed: [405, 'invalid_request_error'],
  request_timeout: [408, 'invalid_request_error'],
  precondition_failed: [412, 'invalid_request_error'],
  too_large: [413, 'invalid_request_error'],
  unsupported_media_type: [415, 'invalid_request_error'],
  range_not_satisfiable: [416, 'invalid_request_error'],
  idempotency_key_reused: [422, 'invalid_request_error'],
  checksum_mismatch: [422, 'invalid_request_error'],
  locked: [423, 'invalid_request_error'],
  rate_limit_exceeded: [429, 'rate_limit_error'],
  insufficient_quota: [429, 'rate_limit_error'],
  internal_error: [500, 'server_error'],
  service_unavailable: [503, 'server_error'],
  storage_full: [507, 'server_error'],
  backend_error: [502, 'upstream_error'],
  backend_unavailable: [503, 'upstream_error'],
  backend_timeout: [504, 'upstream_error'],
}

test.each(Object.entries(statuses))(
  'the error reason %s maps to the status and type %j',
  (name, [status, type]) => {
    const reason = name as Reason
    const failure = new ServiceError(reason, 'Why.', { param: 'field' })
    expect({ status: reasons[reason].status, type: reasons[reason].type }).toEqual({ status, type })
    expect(renderError(failure, 'openai')).toEqual({
      error: { message: 'Why.', type, param: 'field', code: name },
    })
    expect(renderError(failure, 'agent')).toEqual({ error: 'Why.', code: name })
    expect(renderError(failure, 'artifact')).toEqual({ ok: false, error: 'Why.' })
  },
)

test('the table in this test contains every error reason', () => {
  expect(Object.keys(reasons).sort()).toEqual(Object.keys(statuses).sort())
})

const hello = { messages: [{ role: 'user', content: 'hello' }] }
const yaml = 'name: A\ninstructions: B\n'
/** Matches a key with at least one character beyond its public part. */
const wholeKey = /(svc_(scoped_)?|agnt_key-)(?!scoped_)\w{13}/
const unknownKey = `svc_${'0'.repeat(61)}`

interface Setup {
  readonly app: TestApp
  readonly agentId: string
  readonly agentKey: string
}
type Call = (setup: Setup) => Promise<Answer>
const say = (content: string) => ({ model: 'mock', messages: [{ role: 'user', content }] })

/** Requests that cause each error, by reason and API. */
const triggers: Readonly<
  Record<string, Partial<Record<'agent' | 'chat' | 'rpc', Call>> & { env?: Record<string, string> }>
> = {
  missing_api_key: {
    agent: ({ app }) => app.call('GET', '/v1/agents', { key: null }),
    chat: ({ app }) => app.call('GET', '/v1/models', { key: null }),
    rpc: ({ app }) => callProcedure(app, 'models.list', {}, { key: null }),
  },
  invalid_api_key: {
    agent: ({ app }) => app.call('POST', '/v1/agents', { key: unknownKey, body: { yaml } }),
    chat: ({ app }) => app.call('POST', '/v1/chat/completions', { key: unknownKey, body: hello }),
    rpc: ({ app }) => callProcedure(app, 'agents.create', { yaml }, { key: unknownKey }),
  },
  insufficient_permissions: {
    agent: ({ app }) => app.call('GET', '/v1/agents/me'),
    chat: ({ app, agentKey }) => app.call('POST', '/v1/keys/rotate', { key: agentKey }),
    rpc: ({ app, agentKey }) => callProcedure(app, 'keys.rotate', {}, { key: agentKey }),
  },
  model_not_allowed: {
    chat: ({ app, agentKey }) =>
      app.call('POST', '/v1/chat/completions', { key: agentKey, body: { ...hello, model: 'agent/other' } }),
    rpc: ({ app, agentKey }) =>
      callProcedure(app, 'chat.stream', { ...hello, model: 'agent/other' }, { key: agentKey }),
  },
  invalid_value: {
    agent: ({ app }) => app.call('POST', '/v1/agents', { body: { yaml: 5 } }),
    chat: ({ app }) => app.call('POST', '/v1/chat/completions', { body: { model: 'mock', messages: [] } }),
    rpc: ({ app }) => callProcedure(app, 'agents.create', { yaml: 5 }),
  },
  not_found: {
    agent: ({ app }) => app.call('GET', '/v1/agents/agent-unknown'),
    chat: ({ app }) => app.call('GET', '/v1/nothing/here'),
    rpc: ({ app }) => callProcedure(app, 'agents.get', { agent_id: 'agent-unknown' }),
  },
  model_not_found: {
    chat: ({ app }) => app.call('GET', '/v1/models/none'),
    rpc: ({ app }) => callProcedure(app, 'models.get', { model_id: 'none' }),
  },
  method_not_allowed: {
    agent: ({ app }) => app.call('DELETE', '/v1/agents'),
    chat: ({ app }) => app.call('DELETE', '/v1/models'),
    rpc: ({ app }) => app.call('POST', '/trpc/models.list', { body: {} }),
  },
  precondition_failed: {
    agent: ({ app, agentId }) =>
      app.call('PUT', `/v1/agents/${agentId}`, { body: { yaml }, headers: { 'If-Match': '"none"' } }),
    rpc: ({ app, agentId }) =>
      callProcedure(app, 'agents.replace', { agent_id: agentId, yaml, if_match: '"none"' }),
  },
  too_large: {
    agent: ({ app }) => app.call('POST', '/v1/agents', { body: { yaml: 'x'.repeat(1024 * 1024) } }),
    chat: ({ app }) => app.call('POST', '/v1/chat/completions', { body: say('x'.repeat(70_000)) }),
    rpc: ({ app }) => callProcedure(app, 'agents.create', { yaml: 'x'.repeat(1024 * 1024) }),
    env: { PARLEY_MAX_BODY_BYTES: '65536' },
  },
  unsupported_media_type: {
    agent: ({ app }) =>
      app.call('POST', '/v1/agents', { body: yaml, headers: { 'Content-Type': 'text/html' } }),
    chat: ({ app }) =>
      app.call('POST', '/v1/chat/completions', { body: '{}', headers: { 'Content-Type': 'text/yaml' } }),
    rpc: ({ app }) =>
      app.call('POST', '/trpc/agents.create', {
        body: '{}',
        headers: { 'Content-Type': 'application/octet-stream' },
      }),
  },
  rate_limit_exceeded: {
    agent: ({ app }) => app.call('GET', '/v1/agents'),
    chat: ({ app }) => app.call('GET', '/v1/models'),
    rpc: ({ app }) => callProcedure(app, 'models.list'),
    // Creating the agent uses up the only request that the limit allows.
    env: { PARLEY_RATE_LIMIT_PARENT: '1' },
  },
  backend_error: {
    chat: ({ app }) => app.call('POST', '/v1/chat/completions', { body: say('[[error:401]]') }),
  },
  backend_unavailable: {
    chat: ({ app }) => app.call('POST', '/v1/chat/completions', { body: say('hello') }),
    env: {
      PARLEY_BACKEND: 'gateway',
      PARLEY_GATEWAY_URL: 'http://127.0.0.1:1/v1',
      PARLEY_BACKEND_ATTEMPTS: '1',
    },
  },
  internal_error: {
    agent: withoutDatabase(({ app }) => app.call('GET', '/v1/agents/agent-unknown')),
    chat: withoutDatabase(({ app }) => app.call('GET', '/v1/models')),
    rpc: withoutDatabase(({ app }) => callProcedure(app, 'agents.list')),
  },
}

/** Makes every SQL statement on the agents table fail, on all connections. */
async function breakDatabase(app: TestApp): Promise<void> {
  const rename = (from: string, to: string) =>
    app.service.deps.db.schema.alterTable(from).renameTo(to).execute()
  await rename('agents', 'renamed_agents')
  // Other tests use the same PostgreSQL database.
  onTestFinished(() => rename('renamed_agents', 'agents'))
}

function withoutDatabase(ask: Call): Call {
  return async (setup) => {
    await breakDatabase(setup.app)
    return ask(setup)
  }
}

const cases = Object.entries(triggers).flatMap(([reason, { env = {}, ...calls }]) =>
  Object.entries(calls).map(([api, ask]) => ({ reason: reason as Reason, api, ask, env })),
)

describe.each(cases)('the $reason error of the $api API', ({ reason, api, ask, env }) => {
  test('every error response has the documented status and format and does not reveal internals or keys', async () => {
    const { log, lines } = createLineLog()
    const app = await startApp(env, { log })
    const { agent_id: agentId, agent_key: agentKey } = await app.createAgent()
    const answer = await ask({ app, agentId, agentKey })

    const [status, type] = statuses[reason]
    expect(answer.status).toBe(status)
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    expect(answer.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null)
    expect(answer.headers.has('retry-after')).toBe(status === 429)
    expect(answer.headers.has('allow')).toBe(status === 405)
    if (api === 'agent') {
      expect(answer.body).toEqual({ error: expect.any(String), code: reason })
    } else if (api === 'chat') {
      expect(answer.body.error).toMatchObject({ message: expect.any(String), type, code: reason })
      expect(Object.keys(answer.body.error)).toEqual(['message', 'type', 'param', 'code'])
    } else {
      const { message, data } = answer.body.error.json
      expect(message).toEqual(expect.any(String))
      expect(data).toMatchObject({ reason, code: reason, httpStatus: status })
      expect(data).not.toHaveProperty('stack')
    }
    expect(answer.text).not.toMatch(/node_modules|\.ts:|sqlite|kysely|driver/i)
    expect(lines.join('')).not.toMatch(wholeKey)
    expect(lines.filter((line) => JSON.parse(line).level >= 50)).toHaveLength(
      reason === 'internal_error' ? 1 : 0,
    )
  })
})

test('an internal error has the same message in every API, and the log contains the cause', async () => {
  const { log, lines } = createLineLog()
  const app = await startApp({}, { log })
  await breakDatabase(app)
  const requestId = 'the-one-that-failed'
  const answer = await app.call('GET', '/v1/models', { headers: { 'X-Request-Id': requestId } })
  expect(answer.body.error.message).toBe('Internal server error.')
  expect((await app.call('GET', '/v1/agents')).body.error).toBe('Internal server error.')
  expect((await callProcedure(app, 'models.list')).body.error.json.message).toBe('Internal server error.')
  const line = JSON.parse(lines.find((text) => text.includes(requestId)) ?? '{}')
  expect(line).toMatchObject({ requestId, path: '/v1/models', reason: 'internal_error' })
  expect(line.err.message).toMatch(/agents/)
})

test('the log does not contain complete keys from URLs', async () => {
  const { log, lines } = createLineLog()
  const app = await startApp({}, { log })
  const { agent_key: agentKey } = await app.createAgent()
  for (const key of [app.key, agentKey, `svc_scoped_${'a'.repeat(61)}`]) {
    await app.call('GET', `/v1/agents/${key}`)
    await app.call('GET', `/v1/keys/${key}`)
    await app.call('GET', `/v1/models?api_key=${key}`, { key: null })
    await app.call('GET', `/${key}`)
    await app.call('GET', `/trpc/${key}`)
  }
  expect(lines.length).toBeGreaterThan(10)
  expect(lines.join('')).not.toMatch(wholeKey)
})
