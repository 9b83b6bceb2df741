/** Verifies the JWT with which an owner states the identity of a visitor (RFC 7519, RFC 8725). */
import { createLocalJWKSet, errors, type JWTPayload, jwtVerify } from 'jose'
import type { AgentVisitors } from '../../agents/visitor-rules.ts'
import type { IdentifiedVisitor } from '../../identity/visitor-tokens.ts'
import { ServiceError } from '../../lib/errors.ts'
import type { KeySets } from './key-sets.ts'

const MAX_TOKEN_BYTES = 8 * 1024
const MAX_LIFETIME_SECONDS = 3600
const SKEW_SECONDS = 30
const MAX_SUBJECT = 255
const MAX_NAME = 200
const MAX_EMAIL = 320
/** The visitor's token contains the claims, and must fit into a header. */
const MAX_CLAIMS_BYTES = 2 * 1024

/** The lists have no common algorithm, so that a public key is never used as a secret. */
const secretAlgorithms = ['HS256']
const publicAlgorithms = ['RS256', 'PS256', 'ES256', 'EdDSA']

export interface JwtSource {
  readonly agentId: string
  readonly rules: AgentVisitors
  readonly keySets: Pick<KeySets, 'find'>
  /** Returns the agent's valid secrets, newest first. */
  readonly openSecrets: () => Promise<readonly string[]>
  readonly nowSeconds: number
}

export interface StatedIdentity {
  readonly visitor: Omit<IdentifiedVisitor, 'id'>
  /** Unix seconds until which the identity is valid. */
  readonly expiresAt: number
}

/**
 * @throws ServiceError `identity_invalid`, `identity_expired`, or `service_unavailable` if the keys cannot be
 * read
 */
export async function verifyIdentity(source: JwtSource, token: string): Promise<StatedIdentity> {
  if (Buffer.byteLength(token) > MAX_TOKEN_BYTES) throw identityInvalid('must be at most 8 KiB')
  const payload = await verifySignature(source, token).catch((error) => {
    throw error instanceof ServiceError ? error : toFailure(error)
  })
  return readPayload(source, payload)
}

async function verifySignature(source: JwtSource, token: string): Promise<JWTPayload> {
  const { agentId, rules, nowSeconds, keySets } = source
  const { issuer = agentId, audience = agentId, jwks, jwksUrl } = rules.jwt
  const options = {
    ...{ issuer, audience, clockTolerance: SKEW_SECONDS, currentDate: new Date(nowSeconds * 1000) },
    requiredClaims: ['sub', 'iat', 'exp'],
  }
  if (jwks === undefined && jwksUrl === undefined) {
    return verifyWithSecrets(await source.openSecrets(), token, options)
  }
  const publicOptions = { ...options, algorithms: publicAlgorithms }
  if (jwksUrl === undefined)
    return (
      await jwtVerify(
        token,
        createLocalJWKSet(jwks as Parameters<typeof createLocalJWKSet>[0]),
        publicOptions,
      )
    ).payload
  try {
    return (await jwtVerify(token, await keySets.find(jwksUrl), publicOptions)).payload
  } catch (error) {
    // The owner may have added a key since the set was read.
    if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
    return (await jwtVerify(token, await keySets.find(jwksUrl, { isStale: true }), publicOptions)).payload
  }
}

async function verifyWithSecrets(
  secrets: readonly string[],
  token: string,
  options: object,
): Promise<JWTPayload> {
  let failure: unknown = identityInvalid('cannot be verified, because the agent has no visitor secret')
  for (const secret of secrets) {
    try {
      const key = new TextEncoder().encode(secret)
      return (await jwtVerify(token, key, { ...options, algorithms: secretAlgorithms })).payload
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error
      failure = error
    }
  }
  throw failure
}

function readPayload({ rules, nowSeconds }: JwtSource, payload: JWTPayload): StatedIdentity {
  const { iss: issuer = '', sub: subject, iat = 0, exp = 0 } = payload
  if (exp - iat > MAX_LIFETIME_SECONDS) throw identityInvalid('exp must be at most 1 hour after iat')
  if (iat > nowSeconds + SKEW_SECONDS) throw identityInvalid('iat must not be in the future')
  const claims = Object.fromEntries(
    rules.claims.filter((name) => Object.hasOwn(payload, name)).map((name) => [name, payload[name]]),
  )
  if (Buffer.byteLength(JSON.stringify(claims)) > MAX_CLAIMS_BYTES)
    throw identityInvalid('the claims that the agent lists must have at most 2 KiB')
  const name = readText('name', payload.name, MAX_NAME)
  const email = readText('email', payload.email, MAX_EMAIL)
  const text = readText('sub', subject, MAX_SUBJECT)
  if (text === null) throw identityInvalid('sub must not be empty')
  return {
    visitor: { kind: 'verified', issuer, subject: text, name, email, claims },
    expiresAt: Math.min(Math.floor(exp) + SKEW_SECONDS, nowSeconds + MAX_LIFETIME_SECONDS),
  }
}

/** Returns null for a missing or empty claim. */
function readText(name: string, value: unknown, most: number): string | null {
  if (value === undefined || value === null || value === '') return null
  const isText = typeof value === 'string' && value.isWellFormed() && !/\p{Cc}/u.test(value)
  if (!isText) throw identityInvalid(`${name} must be text without control characters`)
  if (value.length > most) throw identityInvalid(`${name} must be at most ${most} characters`)
  return value
}

function toFailure(error: unknown): ServiceError {
  if (error instanceof errors.JWTExpired) return identityExpired()
  if (error instanceof errors.JWTClaimValidationFailed) {
    const isMissing = error.reason === 'missing'
    const wrong = error.claim === 'nbf' ? 'must not be in the future' : 'has a wrong value'
    return identityInvalid(`${error.claim} ${isMissing ? 'is required' : wrong}`)
  }
  if (error instanceof errors.JOSEAlgNotAllowed) return identityInvalid('the algorithm is not accepted')
  if (error instanceof errors.JWKSNoMatchingKey) return identityInvalid('was not signed with a known key')
  if (error instanceof errors.JWKSMultipleMatchingKeys)
    return identityInvalid('must name its key in the header `kid`, because several keys match')
  if (error instanceof errors.JWSSignatureVerificationFailed)
    return identityInvalid('the signature is invalid')
  if (error instanceof errors.JOSEError) return identityInvalid('must be a valid JWT')
  throw error
}

export function identityInvalid(problem: string): ServiceError {
  return new ServiceError('identity_invalid', `identity_token: ${problem}`, { param: 'identity_token' })
}

export function identityExpired(): ServiceError {
  return new ServiceError(
    'identity_expired',
    'The visitor token has expired; request a new one from the page.',
  )
}
