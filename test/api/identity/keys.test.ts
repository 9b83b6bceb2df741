/** Tests which parent keys the API accepts, and how they are rotated. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { mintKey, parseKey } from '../../../src/lib/api-key.ts'
import { newId } from '../../../src/lib/ids.ts'
import { createTenant } from '../../support/agents.ts'
import { type CallOptions, startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { forgeKey } from '../../support/forge-key.ts'
import { callProcedure, createTypedClient } from '../../support/rpc.ts'

const NOW = 1_800_000_000

const validate = (app: TestApp, key: string | null) => app.call('GET', '/v1/keys/validate', { key })

async function statusesOf(app: TestApp, ...keys: string[]): Promise<number[]> {
  const answers = await Promise.all(keys.map((key) => validate(app, key)))
  return answers.map(({ status }) => status)
}

const rotate = (app: TestApp, options: CallOptions = {}) => app.call('POST', '/v1/keys/rotate', options)

describe('the key of a request', () => {
  test('can be validated at /v1/keys/validate, which returns its kind', async () => {
    const app = await startApp()
    const { agent_key: agentKey } = await app.createAgent()
    expect((await validate(app, app.key)).body).toEqual({ valid: true, kind: 'parent' })
    expect((await validate(app, agentKey)).body).toEqual({ valid: true, kind: 'agent' })
    expect(await createTypedClient(app, agentKey).keys.validate.query({})).toEqual({
      valid: true,
      kind: 'agent',
    })
  })

  test('is required: a request without one returns 401 missing_api_key', async () => {
    const answer = await validate(await startApp(), null)
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect(answer.body.error).toMatchObject({ type: 'authentication_error', code: 'missing_api_key' })
  })

  test.each<[string, (key: string) => string]>([
    ['not a key', () => 'nonsense'],
    ['a key with its last character changed', (key) => key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')],
    [
      'a key with a changed character in its secret',
      (key) => key.replace(/.(?=.{20}$)/, (c) => (c === '0' ? '1' : '0')),
    ],
    ['a key without its last character', (key) => key.slice(0, -1)],
    ['a well-formed key that does not exist', () => mintKey('parent', randomBytes).text],
    [
      'a key with the same public id and a different secret',
      (key) => mintKey('parent', randomBytes, parseKey(key)?.publicId).text,
    ],
    ['a scoped key with a valid layout', () => forgeKey('svc_scoped_', newId('', 55, randomBytes))],
    ['a scoped key with the rest of a valid key', (key) => forgeKey('svc_scoped_', key.slice(4, -6))],
    ['an agent key with the rest of a valid parent key', (key) => forgeKey('agnt_key-', key.slice(4, -6))],
    ['two keys', (key) => `${key},${key}`],
    ['a key in lower case', (key) => key.toLowerCase()],
  ])('is rejected with 401 invalid_api_key if it is %s', async (_what, corrupt) => {
    const app = await startApp()
    const answer = await validate(app, corrupt(app.key))
    expect(answer.status).toBe(401)
    expect(answer.body.error).toMatchObject({ type: 'authentication_error', code: 'invalid_api_key' })
    expect(answer.text).not.toContain(app.key.slice(16, 40))
  })
})

describe('rotating a parent key', () => {
  test.each<[string, CallOptions]>([
    ['without a body', {}],
    ['with an empty body', { body: {} }],
    ['with a zero-length body', { headers: { 'Content-Type': 'application/json' } }],
    ['with an overlap of 0', { body: { overlap_seconds: 0 } }],
  ])('immediately invalidates the old secret but not the public id (%s)', async (_what, options) => {
    const app = await startApp({}, { clock: createFakeClock(NOW) })
    expect(await statusesOf(app, app.key)).toEqual([200])
    const answer = await rotate(app, options)
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store'])
    const { key } = answer.body
    expect(answer.body).toEqual({
      key,
      key_hint: `svc_…${key.slice(-4)}`,
      rotated_at: NOW,
      previous_valid_until: NOW,
    })
    expect(parseKey(key)).toEqual(parseKey(app.key))
    expect(await statusesOf(app, app.key, key)).toEqual([401, 200])
  })

  test('without an overlap permanently invalidates the old secret, even if the clock is set back later', async () => {
    const clock = createFakeClock(NOW)
    const app = await startApp({}, { clock })
    const { agent_id: agentId, agent_key: agentKey } = await app.createAgent()
    const { body: parent } = await rotate(app)
    const path = `/v1/agents/${agentId}/rotate-key`
    expect((await app.call('POST', path, { key: parent.key })).status).toBe(200)
    const { now } = clock
    clock.now = () => now() - 300_000
    expect(await statusesOf(app, app.key, agentKey, parent.key)).toEqual([401, 401, 200])
  })

  test('keeps the old secret valid until the overlap ends', async () => {
    const clock = createFakeClock(NOW)
    const app = await startApp({}, { clock })
    const { body } = await rotate(app, { body: { overlap_seconds: 90 } })
    expect(body.previous_valid_until).toBe(NOW + 90)
    expect(await statusesOf(app, app.key, body.key)).toEqual([200, 200])
    clock.advance(89.9)
    expect(await statusesOf(app, app.key, body.key)).toEqual([200, 200])
    clock.advance(0.1)
    expect(await statusesOf(app, app.key, body.key)).toEqual([401, 200])
  })

  test('with an overlap does not extend an earlier overlap', async () => {
    const clock = createFakeClock(NOW)
    const app = await startApp({}, { clock })
    const { key: second } = (await rotate(app, { body: { overlap_seconds: 60 } })).body
    const { key: third } = (await rotate(app, { key: second, body: { overlap_seconds: 600 } })).body
    expect(await statusesOf(app, app.key, second, third)).toEqual([200, 200, 200])
    clock.advance(60)
    expect(await statusesOf(app, app.key, second, third)).toEqual([401, 200, 200])
    const { key: fourth } = (await rotate(app, { key: third, body: { overlap_seconds: 30 } })).body
    clock.advance(30)
    expect(await statusesOf(app, second, third, fourth)).toEqual([401, 401, 200])
  })

  test('with the old secret during the overlap also invalidates the intermediate secret', async () => {
    const app = await startApp({}, { clock: createFakeClock(NOW) })
    const { key: second } = (await rotate(app, { body: { overlap_seconds: 60 } })).body
    const { key: third } = (await rotate(app)).body
    expect(await statusesOf(app, app.key, second, third)).toEqual([401, 401, 200])
  })

  test('leaves exactly one valid secret after eight concurrent requests', async () => {
    const app = await startApp()
    const answers = await Promise.all(Array.from({ length: 8 }, () => rotate(app)))
    const keys = answers.filter(({ status }) => status === 200).map(({ body }) => body.key as string)
    expect(keys.length).toBeGreaterThan(0)
    expect((await statusesOf(app, app.key, ...keys)).filter((status) => status === 200)).toHaveLength(1)
  })

  test.each([
    [{ overlap_seconds: 2_592_000 }, 200, undefined],
    [{ overlap_seconds: 2_592_001 }, 400, 'overlap_seconds'],
    [{ overlap_seconds: -1 }, 400, 'overlap_seconds'],
    [{ overlap_seconds: 0.5 }, 400, 'overlap_seconds'],
    [{ overlap_seconds: '60' }, 400, 'overlap_seconds'],
    [{ overlap_seconds: null }, 400, 'overlap_seconds'],
    [{ overlap_seconds: 60, key: 'mine' }, 400, null],
    ['[]', 400, null],
    ['null', 400, null],
  ])('with the body %j returns %i', async (body, status, param) => {
    const app = await startApp()
    const answer = await rotate(app, { body, headers: { 'Content-Type': 'application/json' } })
    expect(answer.status).toBe(status)
    if (status === 200) return
    expect(answer.body.error).toMatchObject({ type: 'invalid_request_error', code: 'invalid_value', param })
    expect(await statusesOf(app, app.key)).toEqual([200])
  })

  test('returns 403 for an agent key', async () => {
    const app = await startApp()
    const { agent_key: key } = await app.createAgent()
    const answer = await rotate(app, { key })
    expect(answer).toMatchObject({ status: 403, body: { error: { code: 'insufficient_permissions' } } })
    expect(await statusesOf(app, key, app.key)).toEqual([200, 200])
  })

  test('also works over tRPC', async () => {
    const app = await startApp()
    const { key } = await createTypedClient(app).keys.rotate.mutate({})
    expect(await statusesOf(app, app.key, key)).toEqual([401, 200])
    expect((await callProcedure(app, 'keys.rotate')).status).toBe(401)
  })

  test('does not change which agents a tenant owns', async () => {
    const app = await startApp()
    const other = await createTenant(app)
    const mine = await app.createAgent()
    const foreign = await app.createAgent(undefined, other)
    const { key } = (await rotate(app)).body
    const status = async (key: string, id: string) =>
      (await app.call('GET', `/v1/agents/${id}`, { key })).status
    expect(await status(key, mine.agent_id)).toBe(200)
    expect(await status(key, foreign.agent_id)).toBe(404)
    expect(await status(other, foreign.agent_id)).toBe(200)
    expect(await status(other, mine.agent_id)).toBe(404)
  })
})
