/** Tests how visitors prove their identity, and which proofs the server rejects. */
import { describe, expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import {
  claimsOf,
  createKeyPair,
  createSecret,
  failureOf,
  type IdentityVisit,
  ISSUER,
  identify,
  identifyingAgent,
  signIdentity,
  signWithSecret,
  startIdentityVisit,
} from '../../support/identities.ts'
import { storingAgent } from '../../support/stored-chats.ts'
import { beginSession, say, sayAndWait } from '../../support/visitors.ts'

describe('exchanging an identity', () => {
  test('returns a token for the subject that is valid for at most one hour', async () => {
    const visit = await startIdentityVisit()
    const one = await identify(visit, await signIdentity(visit))
    expect(one).toMatchObject({ id: expect.stringMatching(/^vis_\w{24}$/), kind: 'verified' })
    const now = Math.floor(visit.clock.now() / 1000)
    expect(one.expiresAt).toBe(now + 330)
    const hour = await identify(visit, await signIdentity(visit, { exp: now + 3600 }))
    expect(hour.expiresAt).toBe(now + 3600)
  })

  test('returns the same visitor for the same issuer and subject, and a different one for a different subject', async () => {
    const visit = await startIdentityVisit()
    const [first, again, other] = await Promise.all([
      signIdentity(visit, { email: 'ana@example.org' }).then((jwt) => identify(visit, jwt)),
      signIdentity(visit, { email: 'other@example.org' }).then((jwt) => identify(visit, jwt)),
      signIdentity(visit, { sub: 'u43', email: 'ana@example.org' }).then((jwt) => identify(visit, jwt)),
    ])
    expect(again.id).toBe(first.id)
    expect(other.id).not.toBe(first.id)
    await sayAndWait(first, 'Hello.')
    const later = await identify(visit, await signIdentity(visit))
    expect(later.id).toBe(first.id)
    expect(await later.visitor.conversations.query({})).toMatchObject({ data: [{ title: 'Hello.' }] })
  })

  test('makes the subject, name, email address and listed claims visible to the owner', async () => {
    const visit = await startIdentityVisit({ claims: ['plan', 'missing'] })
    const more = { name: 'Ana', email: 'ana@example.org', plan: 'gold', secret: 'x' }
    const one = await identify(visit, await signIdentity(visit, more))
    expect((await visit.app.call('GET', '/v1/visitors')).body.data).toEqual([])
    const { sent } = await sayAndWait(one, 'Hello.')
    const found = await visit.app.call('GET', '/v1/visitors?subject=u42')
    expect(found.body.data).toMatchObject([
      { id: one.id, kind: 'verified', issuer: ISSUER, subject: 'u42', name: 'Ana', email: 'ana@example.org' },
    ])
    expect(found.body.data[0].claims).toEqual({ plan: 'gold' })
    for (const query of ['email=ana%40example.org', 'q=Ana', 'q=u42'])
      expect((await visit.app.call('GET', `/v1/visitors?${query}`)).body.data).toHaveLength(1)
    const { body } = await visit.app.call('GET', `/v1/conversations/${sent.conversation.id}`)
    expect(body.parley.visitor).toMatchObject({ kind: 'verified', subject: 'u42', name: 'Ana' })
  })

  test('updates the name and the email address when the visitor sends the next message', async () => {
    const visit = await startIdentityVisit()
    await sayAndWait(
      await identify(visit, await signIdentity(visit, { name: 'Ana', email: 'a@example.org' })),
      'One.',
    )
    await sayAndWait(await identify(visit, await signIdentity(visit, { name: 'Ana B.' })), 'Two.')
    const { body } = await visit.app.call('GET', '/v1/visitors')
    expect(body.data).toMatchObject([{ name: 'Ana B.', email: null, conversations: 2 }])
  })

  test('moves the conversations of the anonymous visitor whose token arrives in the same request', async () => {
    const visit = await startIdentityVisit()
    const anonymous = await beginSession(visit.app, visit.key)
    await sayAndWait(anonymous, 'Before.')
    const one = await identify(visit, await signIdentity(visit), anonymous.token)
    expect(await one.visitor.conversations.query({})).toMatchObject({ data: [{ title: 'Before.' }] })
    expect(await anonymous.visitor.conversations.query({})).toMatchObject({ data: [] })
    const [conversation] = (await one.visitor.conversations.query({})).data
    await sayAndWait(one, 'After.', { conversation: conversation?.id })
    const { body } = await visit.app.call('GET', '/v1/visitors')
    expect(body.data).toMatchObject([{ id: one.id, kind: 'verified', conversations: 1 }])
  })

  test("does not move conversations without their visitor's token, or from another identified visitor", async () => {
    const visit = await startIdentityVisit()
    const anonymous = await beginSession(visit.app, visit.key)
    await sayAndWait(anonymous, 'Anonymous.')
    const first = await identify(visit, await signIdentity(visit))
    await sayAndWait(first, 'First.')
    const second = await identify(visit, await signIdentity(visit, { sub: 'u43' }), first.token)
    expect(await second.visitor.conversations.query({})).toMatchObject({ data: [] })
    expect(await first.visitor.conversations.query({})).toMatchObject({ data: [{ title: 'First.' }] })
    expect(await anonymous.visitor.conversations.query({})).toMatchObject({ data: [{ title: 'Anonymous.' }] })
  })

  test('is not needed again while the token of the visitor is valid', async () => {
    const visit = await startIdentityVisit()
    const one = await identify(visit, await signIdentity(visit))
    const again = await beginSession(visit.app, visit.key, one.token)
    expect(again).toMatchObject({ id: one.id, token: one.token })
  })

  test('uses the agent id as issuer and audience if the definition names none', async () => {
    const visit = await startIdentityVisit({ jwt: {} })
    const { agentId } = visit
    expect(await identify(visit, await signIdentity(visit, { iss: agentId, aud: agentId }))).toMatchObject({
      kind: 'verified',
    })
    expect(await failureOf(visit, await signIdentity(visit))).toMatchObject({ status: 401 })
  })

  test('fails if the agent does not accept identities', async () => {
    const visit = await startIdentityVisit()
    const other = await visit.app.createAgent(storingAgent())
    const secret = await createSecret(visit.app, other.agent_id)
    const failure = await failureOf(
      { ...visit, key: other.agent_key },
      await signIdentity({ ...visit, secret }),
    )
    expect(failure).toMatchObject({ status: 401, code: 'identity_invalid' })
    expect(failure.message).toContain('visitors.identity')
  })
})

describe('an identity', () => {
  const cases: Record<string, (visit: IdentityVisit) => Promise<string>> = {
    'that is empty': async () => '',
    'that is not a JWT': async () => 'a.b.c',
    'signed with a different secret': (visit) =>
      signWithSecret('vsk_forged-forged-forged-forged-forged', claimsOf(visit)),
    'with an HMAC algorithm that is not accepted': (visit) =>
      signWithSecret(visit.secret.padEnd(64, 'x'), claimsOf(visit), 'HS512'),
    'with the algorithm none': async (visit) => {
      const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
      return `${encode({ alg: 'none' })}.${encode(claimsOf(visit))}.`
    },
    'with a changed subject': async (visit) => {
      const [head, , signature] = (await signIdentity(visit)).split('.')
      return [
        head,
        Buffer.from(JSON.stringify(claimsOf(visit, { sub: 'admin' }))).toString('base64url'),
        signature,
      ].join('.')
    },
    'from a different issuer': (visit) => signIdentity(visit, { iss: 'https://other.example.org' }),
    'for a different audience': (visit) => signIdentity(visit, { aud: 'other-chat' }),
    'without a subject': (visit) => signIdentity(visit, { sub: undefined }),
    'with an empty subject': (visit) => signIdentity(visit, { sub: '' }),
    'with a subject that is not a string': (visit) => signIdentity(visit, { sub: 42 as never }),
    'without an issue time': (visit) => signIdentity(visit, { iat: undefined }),
    'without an expiry': (visit) => signIdentity(visit, { exp: undefined }),
    'that is valid for more than one hour': (visit) => {
      const { iat = 0 } = claimsOf(visit)
      return signIdentity(visit, { exp: iat + 3601 })
    },
    'that was issued in the future': (visit) => {
      const { iat = 0 } = claimsOf(visit)
      return signIdentity(visit, { iat: iat + 31 })
    },
    'that is not yet valid': (visit) => {
      const { iat = 0 } = claimsOf(visit)
      return signIdentity(visit, { nbf: iat + 31 })
    },
    'of more than 8 KiB': (visit) => signIdentity(visit, { filler: 'x'.repeat(8192) }),
    'with claims of more than 2 KiB': (visit) => signIdentity(visit, { plan: 'x'.repeat(2048) }),
    'with a name that is not a string': (visit) => signIdentity(visit, { name: { first: 'Ana' } }),
    'with control characters': (visit) => signIdentity(visit, { sub: 'u\u000042' }),
    'signed with an RSA key, for an agent with a secret': async (visit) =>
      (await createKeyPair('RS256')).sign(claimsOf(visit)),
  }

  test.for(Object.entries(cases))('%s is rejected with 401 identity_invalid', async ([, forge]) => {
    const visit = await startIdentityVisit({ claims: ['plan'] })
    const failure = await failureOf(visit, await forge(visit))
    expect(failure).toMatchObject({ status: 401, code: 'identity_invalid' })
    const anonymous = await beginSession(visit.app, visit.key)
    expect(await failureOf(visit, await forge(visit), anonymous.token)).toMatchObject({ status: 401 })
  })
})

describe('an expired identity', () => {
  test('is rejected 30 seconds after its expiry', async () => {
    const visit = await startIdentityVisit()
    const jwt = await signIdentity(visit, { exp: Math.floor(visit.clock.now() / 1000) + 60 })
    visit.clock.advance(89)
    await identify(visit, jwt)
    visit.clock.advance(2)
    expect(await failureOf(visit, jwt)).toMatchObject({ status: 401, code: 'identity_expired' })
  })

  test('makes the token invalid, and a new identity returns the same visitor', async () => {
    const visit = await startIdentityVisit()
    const one = await identify(visit, await signIdentity(visit))
    visit.clock.advance(331)
    const expired = { data: { httpStatus: 401 } }
    await expect(one.visitor.conversations.query({})).rejects.toMatchObject(expired)
    await expect(say(one, 'Hello.')).rejects.toMatchObject(expired)
    await expect(one.visitor.session.mutate({})).rejects.toMatchObject(expired)
    const headers = { 'X-Parley-Visitor': one.token }
    const { status, body } = await visit.app.call('GET', '/v1/conversations', { key: visit.key, headers })
    expect([status, body.error.code]).toEqual([401, 'identity_expired'])
    const renewed = await identify(visit, await signIdentity(visit), one.token)
    expect(renewed.id).toBe(one.id)
  })
})

describe('an agent that requires an identity', () => {
  test('rejects calls from anonymous visitors and from clients without a visitor', async () => {
    const visit = await startIdentityVisit()
    const { app, key, agentId } = visit
    const anonymous = await beginSession(app, key)
    const required = identifyingAgent({ identity: 'required' })
    const headers = { 'Content-Type': 'application/yaml' }
    expect((await app.call('PUT', `/v1/agents/${agentId}`, { body: required, headers })).status).toBe(200)
    const denied = { data: { httpStatus: 403 } }
    await expect(beginSession(app, key)).rejects.toMatchObject(denied)
    await expect(anonymous.visitor.conversations.query({})).rejects.toMatchObject(denied)
    const body = { messages: [{ role: 'user', content: 'Hello.' }] }
    const refused = await app.call('POST', '/v1/chat/completions', { key, body })
    expect([refused.status, refused.body.error.code]).toEqual([403, 'visitor_required'])
    expect((await app.call('GET', '/v1/agents/me', { key })).body).toMatchObject({ identity: 'required' })
    const one = await identify(visit, await signIdentity(visit))
    await sayAndWait(one, 'Hello.')
    const answer = await app.call('POST', '/v1/chat/completions', {
      key,
      body,
      headers: { 'X-Parley-Visitor': one.token },
    })
    expect(answer.status).toBe(200)
  })
})

describe('an agent definition', () => {
  test.for([
    [{ identity: 'maybe' }, 'visitors.identity'],
    [{ identty: 'required' }, "visitors: has an unknown key 'identty'"],
    [{ jwt: { issuer: '' } }, 'visitors.jwt.issuer'],
    [{ jwt: { audiance: 'x' } }, "visitors.jwt: has an unknown key 'audiance'"],
    [{ jwt: { jwksUrl: 'ftp://example.org' } }, 'visitors.jwt.jwksUrl'],
    [{ jwt: { jwksUrl: 'https://me:pw@example.org' } }, 'visitors.jwt.jwksUrl'],
    [{ jwt: { jwksUrl: 'https://example.org', jwks: { keys: [] } } }, 'visitors.jwt.jwks'],
    [{ jwt: { jwks: { keys: [] } } }, 'visitors.jwt.jwks.keys'],
    [{ jwt: { jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] } } }, 'visitors.jwt.jwks.keys[0]'],
    [
      { jwt: { jwks: { keys: [{ kty: 'RSA', n: 'AQAB', e: 'AQAB', d: 'AQAB' }] } } },
      'visitors.jwt.jwks.keys[0]',
    ],
    [{ claims: ['plan', 'plan'] }, 'visitors.claims: must not repeat a claim'],
    [{ claims: 'plan' }, 'visitors.claims: must be a list'],
  ] as const)(
    'with the visitors settings %j is rejected with an error that names %s',
    async ([visitors, named]) => {
      const app = await startApp()
      const definition = { ...JSON.parse(storingAgent()), visitors }
      const headers = { 'Content-Type': 'application/yaml' }
      const answer = await app.call('POST', '/v1/agents', { headers, body: JSON.stringify(definition) })
      expect(answer.status).toBe(400)
      expect(answer.text).toContain(JSON.stringify(named).slice(1, -1))
    },
  )
})
