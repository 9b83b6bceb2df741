/** Tests that only the owner of an agent can see and manage it. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { mintKey } from '../../../src/lib/api-key.ts'
import { createTenant } from '../../support/agents.ts'
import { type CallOptions, GREETER, startApp } from '../../support/app.ts'

const verbs: readonly (readonly [method: string, rest: string, options: CallOptions])[] = [
  ['GET', '', {}],
  ['PUT', '', { body: { yaml: GREETER } }],
  ['DELETE', '', {}],
  ['GET', '/versions', {}],
  ['POST', '/versions/1/restore', {}],
  ['POST', '/rotate-key', {}],
]

describe('an agent id', () => {
  test.each(verbs)(
    'of another tenant returns the same 404 from %s /v1/agents/{id}%s as an unknown id',
    async (method, rest, options) => {
      const app = await startApp()
      const other = await createTenant(app)
      const { agent_id } = await app.createAgent()
      const before = await app.call('GET', `/v1/agents/${agent_id}`)
      const answerTo = (id: string) => app.call(method, `/v1/agents/${id}${rest}`, { ...options, key: other })
      const [theirs, unknown] = [await answerTo(agent_id), await answerTo('agent-00000000000000000000')]
      expect(theirs.status).toBe(404)
      expect(theirs.body).toEqual({ error: 'Agent not found.', code: 'not_found' })
      expect(theirs.text).toBe(unknown.text)
      expect(stableHeaders(theirs.headers)).toEqual(stableHeaders(unknown.headers))
      expect((await app.call('GET', `/v1/agents/${agent_id}`)).text).toBe(before.text)
    },
  )

  test.each([
    ['an encoded slash', 'agent-%2F..%2F', 404],
    ['Unicode', 'agent-%F0%9F%98%80', 404],
    ['a NUL', 'agent-%00', 404],
    ['SQL', "agent-'%20or%20'1'%3D'1", 404],
    ['4,000 characters', 'a'.repeat(4000), 404],
    ['bytes that are not UTF-8', '%FF', 400],
    ['an incomplete escape', '%4', 400],
  ])('with %s does not match any agent', async (_what, id, expected) => {
    const app = await startApp()
    for (const [method, rest, options] of verbs) {
      const answer = await app.call(method, `/v1/agents/${id}${rest}`, options)
      expect([method, rest, answer.status]).toEqual([method, rest, expected])
      expect(answer.body).toEqual({ error: expect.any(String), code: expect.any(String) })
    }
  })

  test('may be percent-encoded', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const encoded = [...agent_id].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join('')
    expect((await app.call('GET', `/v1/agents/${encoded}`)).body.agent_id).toBe(agent_id)
  })
})

const ownerRoutes: readonly (readonly [method: string, path: string, options: CallOptions])[] = [
  ['POST', '/v1/agents', { body: { yaml: GREETER } }],
  ['GET', '/v1/agents', {}],
  ['GET', '/v1/agents/{id}', {}],
  ['PUT', '/v1/agents/{id}', { body: { yaml: GREETER } }],
  ['DELETE', '/v1/agents/{id}', {}],
  ['POST', '/v1/agents/{id}/rotate-key', {}],
  ['GET', '/v1/agents/{id}/versions', {}],
  ['POST', '/v1/agents/{id}/versions/1/restore', {}],
]

describe('an owner-only route', () => {
  test.each(ownerRoutes)(
    'returns 401 for an agent key and changes nothing: %s %s',
    async (method, path, options) => {
      const app = await startApp()
      const { agent_id, agent_key } = await app.createAgent()
      const before = await app.call('GET', '/v1/agents')
      const answer = await app.call(method, path.replace('{id}', agent_id), { ...options, key: agent_key })
      expect([answer.status, answer.body]).toEqual([
        401,
        { error: expect.stringContaining('parent key'), code: 'invalid_api_key' },
      ])
      expect((await app.call('GET', '/v1/agents')).text).toBe(before.text)
    },
  )

  test.each(ownerRoutes)(
    'returns 401 without a key or with an invalid key: %s %s',
    async (method, path, options) => {
      const app = await startApp()
      const { agent_id } = await app.createAgent()
      const mistyped = `${app.key.slice(0, -1)}${app.key.endsWith('0') ? '1' : '0'}`
      const unknown = mintKey('parent', randomBytes).text
      for (const [key, code] of [
        [null, 'missing_api_key'],
        [mistyped, 'invalid_api_key'],
        [unknown, 'invalid_api_key'],
        [unknown.replace('svc_', 'svc_scoped_'), 'invalid_api_key'],
        ['', 'missing_api_key'],
      ] as const) {
        const answer = await app.call(method, path.replace('{id}', agent_id), { ...options, key })
        expect([answer.status, answer.body]).toEqual([401, { error: expect.any(String), code }])
        expect(answer.headers.get('www-authenticate')).toBe('Bearer')
      }
    },
  )
})

/** Returns the headers that are the same in every response. */
function stableHeaders(headers: Headers): Record<string, string> {
  const {
    date,
    'x-request-id': _id,
    'x-ratelimit-remaining': _left,
    'openai-processing-ms': _ms,
    ...rest
  } = Object.fromEntries(headers)
  return rest
}
