/** Tests the visitor secrets and key sets that verify visitors' identities. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { openApp } from '../../support/app.ts'
import {
  claimsOf,
  createKeyPair,
  createSecret,
  failureOf,
  ISSUER,
  identify,
  identifyingAgent,
  serveKeySet,
  signIdentity,
  signWithSecret,
  startIdentityVisit,
} from '../../support/identities.ts'
import { makeFolder } from '../../support/process.ts'

const allowLoopback = { PARLEY_WEBHOOK_ALLOW: '127.0.0.1' }

describe('a visitor secret', () => {
  test('is returned only when it is created, but its times remain readable', async () => {
    const visit = await startIdentityVisit()
    const path = `/v1/agents/${visit.agentId}/visitor-secret`
    expect(visit.secret).toMatch(/^vsk_[\w-]{43}$/)
    const now = Math.floor(visit.clock.now() / 1000)
    const { text, body } = await visit.app.call('GET', path)
    expect(body).toEqual({ agent_id: visit.agentId, created_at: now, previous_valid_until: null })
    expect(text).not.toContain('vsk_')
  })

  test('is valid after a rotation until the overlap ends', async () => {
    const visit = await startIdentityVisit()
    const { app, agentId, clock } = visit
    await createSecret(app, agentId, { overlap_seconds: 600 })
    const now = Math.floor(clock.now() / 1000)
    const { body } = await app.call('GET', `/v1/agents/${agentId}/visitor-secret`)
    expect(body.previous_valid_until).toBe(now + 600)
    expect(await identify(visit, await signIdentity(visit))).toMatchObject({ kind: 'verified' })
    clock.advance(600)
    expect(await failureOf(visit, await signIdentity(visit))).toMatchObject({
      status: 401,
      code: 'identity_invalid',
    })
  })

  test('is invalid immediately after a rotation without an overlap', async () => {
    const visit = await startIdentityVisit()
    const secret = await createSecret(visit.app, visit.agentId)
    expect(await failureOf(visit, await signIdentity(visit))).toMatchObject({ code: 'identity_invalid' })
    expect(await identify(visit, await signIdentity({ ...visit, secret }))).toMatchObject({
      kind: 'verified',
    })
  })

  test('belongs to one agent, and only its parent key can create it', async () => {
    const visit = await startIdentityVisit()
    const other = await visit.app.createAgent(identifyingAgent())
    const foreign = { ...visit, key: other.agent_key }
    expect(await failureOf(foreign, await signIdentity(visit))).toMatchObject({ code: 'identity_invalid' })
    const path = `/v1/agents/${visit.agentId}/visitor-secret`
    const denied = await visit.app.call('POST', path, { key: visit.key, body: {} })
    expect([denied.status, (await visit.app.call('GET', path, { key: visit.key })).status]).toEqual([
      401, 401,
    ])
    expect((await visit.app.call('POST', '/v1/agents/agent-none/visitor-secret', { body: {} })).status).toBe(
      404,
    )
    const bad = await visit.app.call('POST', path, { body: { overlap_seconds: -1 } })
    expect([bad.status, bad.text]).toEqual([400, expect.stringContaining('overlap_seconds')])
  })
})

describe('a key set', () => {
  test.for(['RS256', 'PS256', 'ES256', 'EdDSA'])(
    'in the definition verifies identities signed with %s',
    async (alg) => {
      const pair = await createKeyPair(alg)
      const { kid: _kid, alg: _alg, ...bare } = pair.jwk
      const jwt = { issuer: ISSUER, audience: 'shop-chat', jwks: { keys: [{ ...bare, kid: pair.jwk.kid }] } }
      const visit = await startIdentityVisit({ jwt })
      expect(await identify(visit, await pair.sign(claimsOf(visit)))).toMatchObject({ kind: 'verified' })
      const forged = await (await createKeyPair(alg)).sign(claimsOf(visit), { kid: pair.jwk.kid })
      expect(await failureOf(visit, forged)).toMatchObject({ status: 401, code: 'identity_invalid' })
    },
  )

  test('rejects identities that are signed with its public key or the visitor secret as a shared secret', async () => {
    const { publicKey } = await import('jose').then((jose) =>
      jose.generateKeyPair('RS256', { extractable: true }),
    )
    const { exportJWK, exportSPKI } = await import('jose')
    const jwk = { ...(await exportJWK(publicKey)), kid: 'k' }
    const jwt = { issuer: ISSUER, audience: 'shop-chat', jwks: { keys: [jwk] } }
    const visit = await startIdentityVisit({ jwt })
    const pem = await exportSPKI(publicKey)
    for (const secret of [pem, pem.trim(), JSON.stringify(jwk), visit.secret])
      expect(await failureOf(visit, await signWithSecret(secret, claimsOf(visit)))).toMatchObject({
        status: 401,
        code: 'identity_invalid',
      })
  })

  test('at a URL is cached for ten minutes, but fetched again for an unknown key at most every 30 seconds', async () => {
    const [first, second] = await Promise.all([createKeyPair('ES256', 'one'), createKeyPair('ES256', 'two')])
    const served = await serveKeySet([first.jwk])
    const jwt = { issuer: ISSUER, audience: 'shop-chat', jwksUrl: served.url }
    const visit = await startIdentityVisit({ jwt }, allowLoopback)
    await identify(visit, await first.sign(claimsOf(visit)))
    await identify(visit, await first.sign(claimsOf(visit)))
    expect(served.requests).toBe(1)
    visit.clock.advance(601)
    await identify(visit, await first.sign(claimsOf(visit)))
    expect(served.requests).toBe(2)
    served.text = JSON.stringify({ keys: [first.jwk, second.jwk] })
    expect(await failureOf(visit, await second.sign(claimsOf(visit)))).toMatchObject({
      code: 'identity_invalid',
    })
    visit.clock.advance(31)
    await identify(visit, await second.sign(claimsOf(visit)))
    expect(served.requests).toBe(3)
  })

  test.for([
    ['the address is not allowed', {}, {}],
    ['the server redirects', { status: 302 }, allowLoopback],
    ['the response is not a key set', { text: '[]' }, allowLoopback],
    ['the response exceeds 64 KiB', { text: `{"keys":[]${' '.repeat(65_536)}}` }, allowLoopback],
  ] as const)('at a URL is reported as unavailable if %s', async ([, answer, env]) => {
    const pair = await createKeyPair('ES256')
    const served = Object.assign(await serveKeySet([pair.jwk]), answer)
    const jwt = { issuer: ISSUER, audience: 'shop-chat', jwksUrl: served.url }
    const visit = await startIdentityVisit({ jwt }, env)
    const failure = await failureOf(visit, await pair.sign(claimsOf(visit)))
    expect(failure).toMatchObject({ status: 503, code: 'identity_keys_unavailable' })
  })
})

describe('after the server secret is changed', () => {
  test('a visitor secret remains valid, even when the old server secret is no longer listed', async () => {
    const dataDir = join(await makeFolder(), 'data')
    const [first, second] = ['first', 'second'].map((name) => `the ${name} secret, `.repeat(3).trim())
    const env = (newest = '', former = '') => ({
      ...{ PARLEY_DATA_DIR: dataDir, PARLEY_SECRET: newest, PARLEY_SECRET_PREVIOUS: former },
    })
    const before = await openApp(env(first))
    const { agent_key: key, agent_id: agentId } = await before.createAgent(identifyingAgent())
    const secret = await createSecret(before, agentId)
    await before.close()
    for (const secrets of [env(second, first), env(second)]) {
      const app = await openApp({ ...secrets, PARLEY_PARENT_KEY: before.key })
      const visit = { app, key, secret, clock: systemClock }
      expect(await identify(visit, await signIdentity(visit))).toMatchObject({ kind: 'verified' })
      await app.close()
    }
  })
})
