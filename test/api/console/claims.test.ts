/** Tests which users may claim which parent keys. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { serviceActor } from '../../../src/identity/audit.ts'
import { createParentKey, revokeParentKey, rotateParentKey } from '../../../src/identity/keys.ts'
import { mintKey } from '../../../src/lib/api-key.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { asUser, behindProxy, claimKey, readMe, revealKey } from '../../support/console.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { forgeKey } from '../../support/forge-key.ts'
import { callProcedure } from '../../support/rpc.ts'

const ada = 'ada@example.org'
const grace = 'grace@example.org'
const nothing = { agents: 0, files: 0, artifacts: 0, usage_days: 0, usage_calls: 0 }

async function outcomeOf(app: TestApp, email: string, key: unknown) {
  const { status, body } = await claimKey(app, email, key)
  return status === 200 ? [status, body.claimed] : [status, body.error.code]
}

describe('claiming a parent key', () => {
  test("makes it the user's active key and revokes their automatic key", async () => {
    const app = await startApp(behindProxy)
    const automatic = await revealKey(app, ada)
    const { status, body } = await claimKey(app, ada, ` ${app.key}\n`)
    expect({ status, body }).toEqual({
      status: 200,
      body: { claimed: true, parent_key: app.key.slice(0, 16), moved: nothing },
    })
    const me = await readMe(app, ada)
    expect(me.parent_key).toBe(app.key.slice(0, 16))
    expect(me.keys).toMatchObject([{ name: 'first', is_automatic: false, is_active: true }])
    expect((await app.call('GET', '/v1/models', { key: automatic })).status).toBe(401)
    expect((await app.call('GET', '/v1/models')).status).toBe(200)
  })

  test('has no effect if the user already owns the key', async () => {
    const app = await startApp(behindProxy)
    await claimKey(app, ada, app.key)
    const other = await createParentKey(app.service.deps, serviceActor, 'other')
    await claimKey(app, ada, other.text)
    const before = await readMe(app, ada)
    expect((await claimKey(app, ada, app.key)).body).toEqual({
      claimed: true,
      parent_key: app.key.slice(0, 16),
      moved: nothing,
    })
    expect(await readMe(app, ada)).toEqual(before)
    const automatic = await revealKey(app, grace)
    expect(await outcomeOf(app, grace, automatic)).toEqual([200, true])
    expect((await readMe(app, grace)).keys).toMatchObject([{ is_automatic: true, is_active: true }])
  })

  test('is rejected if the key belongs to another user', async () => {
    const app = await startApp(behindProxy)
    await claimKey(app, ada, app.key)
    const before = await readMe(app, grace)
    const { status, body } = await claimKey(app, grace, app.key)
    expect({ status, body }).toEqual({
      status: 409,
      body: {
        error: {
          message: expect.any(String),
          type: 'invalid_request_error',
          param: 'parent_key',
          code: 'parent_key_already_claimed',
        },
      },
    })
    const automatic = await revealKey(app, ada.replace('ada', 'eve'))
    expect(await outcomeOf(app, grace, automatic)).toEqual([409, 'parent_key_already_claimed'])
    expect(await readMe(app, grace)).toEqual(before)
  })

  const { text: unknown } = mintKey('parent', randomBytes)
  const malformed: [what: string, key: unknown, code: string][] = [
    ['an empty string', '', 'invalid_parent_key'],
    ['a word', 'nonsense', 'invalid_parent_key'],
    ['a mistyped key', `${unknown.slice(0, -1)}${unknown.endsWith('0') ? '1' : '0'}`, 'invalid_parent_key'],
    ['the public part of a key', unknown.slice(0, 16), 'invalid_parent_key'],
    ['an agent key', mintKey('agent', randomBytes).text, 'invalid_parent_key'],
    ['a scoped key', forgeKey('svc_scoped_', 'a'.repeat(55)), 'invalid_parent_key'],
    ['two keys', `${unknown} ${unknown}`, 'invalid_parent_key'],
    ['a list', [unknown], 'invalid_value'],
    ['null', null, 'invalid_value'],
    ['a missing field', undefined, 'invalid_value'],
  ]
  test.each(malformed)('returns 400 for %s', async (_what, key, code) => {
    const app = await startApp(behindProxy)
    const { status, body, text } = await claimKey(app, ada, key)
    expect({ status, param: body.error.param, code: body.error.code }).toEqual({
      status: 400,
      param: 'parent_key',
      code,
    })
    if (typeof key === 'string' && key.length > 20) expect(text).not.toContain(key.slice(0, 30))
  })

  test('returns 404 for an unknown or revoked key', async () => {
    const app = await startApp(behindProxy)
    const revoked = await createParentKey(app.service.deps, serviceActor, 'revoked')
    await revokeParentKey(app.service.deps, serviceActor, revoked.publicId)
    for (const key of [unknown, revoked.text]) {
      const { status, body, text } = await claimKey(app, ada, key)
      expect(status).toBe(404)
      expect(body.error).toMatchObject({ param: 'parent_key', code: 'parent_key_not_found' })
      expect(text).not.toContain(key.slice(0, 30))
    }
    expect((await readMe(app, ada)).keys).toMatchObject([{ is_automatic: true, is_active: true }])
  })

  test('accepts the old secret of a rotated key during its overlap', async () => {
    const clock = createFakeClock()
    const app = await startApp(behindProxy, { clock })
    const { deps } = app.service
    const [lasting, ended] = [
      await createParentKey(deps, serviceActor, 'a'),
      await createParentKey(deps, serviceActor, 'b'),
    ]
    await rotateParentKey(deps, serviceActor, lasting.publicId, 60)
    const { key: newest } = await rotateParentKey(deps, serviceActor, ended.publicId, 60)
    clock.advance(59)
    expect(await outcomeOf(app, ada, lasting.text)).toEqual([200, true])
    clock.advance(1)
    expect(await outcomeOf(app, ada, ended.text)).toEqual([404, 'parent_key_not_found'])
    expect(await outcomeOf(app, ada, newest.text)).toEqual([200, true])
  })

  test('requires a signed-in user rather than a key', async () => {
    const app = await startApp(behindProxy)
    const { agent_key } = await app.createAgent()
    const body = { parent_key: app.key }
    for (const key of [app.key, agent_key]) {
      const answer = await app.call('POST', '/v1/manager/claim-key', {
        key,
        body,
        headers: { 'X-Email': ada },
      })
      expect([answer.status, answer.body.error.code]).toEqual([403, 'insufficient_permissions'])
      const typed = await callProcedure(app, 'manager.claimKey', body, { key })
      expect(typed.status).toBe(403)
    }
    expect((await app.call('POST', '/v1/manager/claim-key', { key: null, body })).status).toBe(401)
  })

  test('works over tRPC', async () => {
    const app = await startApp(behindProxy)
    const { body } = await callProcedure(app, 'manager.claimKey', { parent_key: app.key }, asUser(ada))
    expect(body.result.data.json).toEqual({
      claimed: true,
      parent_key: app.key.slice(0, 16),
      moved: nothing,
    })
    const late = await callProcedure(app, 'manager.claimKey', { parent_key: app.key }, asUser(grace))
    expect(late.body.error.json.data).toMatchObject({ httpStatus: 409, code: 'parent_key_already_claimed' })
  })
})

describe('a user with several keys', () => {
  const choose = (app: TestApp, email: string, id: unknown) =>
    app.call('POST', '/v1/manager/active-key', asUser(email, { body: { parent_key_id: id } }))

  test('can switch between them', async () => {
    const app = await startApp(behindProxy)
    await app.createAgent()
    await claimKey(app, ada, app.key)
    const other = await createParentKey(app.service.deps, serviceActor, 'other')
    await claimKey(app, ada, other.text)
    expect((await app.call('GET', '/v1/manager/agents', asUser(ada))).body.data).toEqual([])
    const { status, body } = await choose(app, ada, app.key.slice(4, 16))
    expect({ status, body }).toEqual({ status: 200, body: await readMe(app, ada) })
    expect(body).toMatchObject({ parent_key: app.key.slice(0, 16), agents: 1 })
    expect(body.keys.map(({ is_active }: { is_active: boolean }) => is_active).sort()).toEqual([false, true])
    expect((await app.call('GET', '/v1/manager/agents', asUser(ada))).body.data).toHaveLength(1)
  })

  test("cannot switch to a revoked key or another user's key", async () => {
    const app = await startApp(behindProxy)
    const { deps } = app.service
    const theirs = await readMe(app, grace)
    const mine = await createParentKey(deps, serviceActor, 'mine')
    await claimKey(app, ada, mine.text)
    const revoked = await createParentKey(deps, serviceActor, 'revoked')
    await claimKey(app, ada, revoked.text)
    await revokeParentKey(deps, serviceActor, revoked.publicId)
    const before = await readMe(app, ada)
    for (const id of [theirs.keys[0].id, revoked.publicId, app.key.slice(4, 16), app.key, 'none', '']) {
      const { status, body, text } = await choose(app, ada, id)
      expect([id, status, body.error.code]).toEqual([id, 404, 'not_found'])
      if (id !== '') expect(text).not.toContain(id)
    }
    expect((await choose(app, ada, 5)).status).toBe(400)
    expect(await readMe(app, ada)).toEqual(before)
    const byKey = await app.call('POST', '/v1/manager/active-key', { body: { parent_key_id: mine.publicId } })
    expect([byKey.status, byKey.body.error.code]).toEqual([403, 'insufficient_permissions'])
  })
})

test('a caller with a parent key can list only that key', async () => {
  const app = await startApp(behindProxy)
  await app.createAgent()
  const { status, body } = await app.call('GET', '/v1/manager/me')
  expect({ status, body }).toEqual({
    status: 200,
    body: {
      user: null,
      is_administrator: false,
      signed_in_by: 'key',
      keys: [expect.objectContaining({ id: app.key.slice(4, 16), name: 'first', is_active: true })],
      parent_key: app.key.slice(0, 16),
      agents: 1,
      conversations: { is_allowed: true, max_days: 365 },
      webhooks: { is_allowed: true },
    },
  })
})
