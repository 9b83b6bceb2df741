/** Creates agents whose visitors prove their identity, and signs identities as an owner's server does. */
import { createServer } from 'node:http'
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import { onTestFinished } from 'vitest'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { startApp, type TestApp } from './app.ts'
import { createFakeClock, type FakeClock } from './fake-clock.ts'
import { storingAgent } from './stored-chats.ts'
import { asVisitor, type TestVisitor } from './visitors.ts'

export const ISSUER = 'https://shop.example.org'
export const AUDIENCE = 'shop-chat'

const unlimited = { PARLEY_RATE_LIMIT_AGENT: '0', PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0' }

/** Returns the definition of an agent that stores its conversations, with settings under `visitors`. */
export function identifyingAgent(visitors: object = {}, more: object = {}): string {
  const jwt = { issuer: ISSUER, audience: AUDIENCE }
  const definition = JSON.parse(storingAgent())
  return JSON.stringify({ ...definition, visitors: { identity: 'optional', jwt, ...visitors }, ...more })
}

export interface IdentityVisit {
  readonly app: TestApp
  readonly clock: FakeClock
  readonly key: string
  readonly agentId: string
  readonly secret: string
}

/** Starts an app with an agent that has a visitor secret. */
export async function startIdentityVisit(
  visitors: object = {},
  env: Readonly<Record<string, string>> = {},
  more: { readonly definition?: object; readonly tools?: object } = {},
): Promise<IdentityVisit> {
  // With the fake clock's `wait`, followers of a conversation would poll almost without a pause.
  const clock: FakeClock = { ...createFakeClock(), wait: systemClock.wait }
  const app = await startApp(
    { ...unlimited, ...env },
    { clock, ...('tools' in more && { tools: more.tools as never }) },
  )
  const { agent_key: key, agent_id: agentId } = await app.createAgent(
    identifyingAgent(visitors, more.definition),
  )
  return { app, clock, key, agentId, secret: await createSecret(app, agentId) }
}

/** Creates or rotates the agent's visitor secret. */
export async function createSecret(app: TestApp, agentId: string, body: object = {}): Promise<string> {
  const answer = await app.call('POST', `/v1/agents/${agentId}/visitor-secret`, { body })
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
  return answer.body.secret
}

interface Signing {
  readonly clock: Pick<Clock, 'now'>
}

/** Returns the claims of a valid identity. */
export function claimsOf({ clock }: Signing, more: JWTPayload = {}): JWTPayload {
  const iat = Math.floor(clock.now() / 1000)
  return { iss: ISSUER, aud: AUDIENCE, sub: 'u42', iat, exp: iat + 300, ...more }
}

/** Signs an identity with the agent's visitor secret. */
export function signIdentity(
  visit: Signing & Pick<IdentityVisit, 'secret'>,
  more: JWTPayload = {},
): Promise<string> {
  return signWithSecret(visit.secret, claimsOf(visit, more))
}

export function signWithSecret(
  secret: string | Uint8Array,
  claims: JWTPayload,
  alg = 'HS256',
): Promise<string> {
  const key = typeof secret === 'string' ? new TextEncoder().encode(secret) : secret
  return new SignJWT(claims).setProtectedHeader({ alg }).sign(key)
}

/** Exchanges an identity for a session; `token` is sent as the visitor's earlier token. */
export async function identify(
  { app, key }: Pick<IdentityVisit, 'app' | 'key'>,
  identityToken: string,
  token?: string,
): Promise<TestVisitor & { readonly kind: string; readonly expiresAt: number }> {
  const session = await asVisitor(app, key, token).session.mutate({ identity_token: identityToken })
  const { id, kind } = session.visitor
  const visitor = asVisitor(app, key, session.token)
  return { id, kind, token: session.token, expiresAt: session.expires_at, visitor }
}

/** Returns the error that clients receive when the exchange of an identity fails. */
export async function failureOf(
  visit: Pick<IdentityVisit, 'app' | 'key'>,
  identityToken: string,
  token?: string,
) {
  const failure = await identify(visit, identityToken, token).then(
    () => undefined,
    (error) => error,
  )
  const { data, message } = failure ?? {}
  return { status: data?.httpStatus, code: data?.code, message: String(message) }
}

export interface KeyPair {
  readonly alg: string
  readonly jwk: JWK
  sign(claims: JWTPayload, header?: object): Promise<string>
}

export async function createKeyPair(alg: string, kid = `key-${alg}`): Promise<KeyPair> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return {
    alg,
    jwk: { ...(await exportJWK(publicKey)), kid, use: 'sig', alg },
    sign: (claims, header = {}) =>
      new SignJWT(claims).setProtectedHeader({ alg, kid, ...header }).sign(privateKey),
  }
}

/** Starts an HTTP server that returns a key set. */
export async function serveKeySet(keys: readonly JWK[]) {
  const served = { url: '', requests: 0, status: 200, text: JSON.stringify({ keys }) }
  const server = createServer((_request, response) => {
    served.requests += 1
    response.writeHead(served.status, { 'Content-Type': 'application/json' }).end(served.text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  served.url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/keys`
  return served
}
