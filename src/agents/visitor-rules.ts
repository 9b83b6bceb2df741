/** Defines the `visitors` part of the agent definition: how visitors prove their identity (ADR 0074). */
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { z } from 'zod'
import { isJsonObject } from '../lib/formats/json.ts'
import { orMissing, Text } from '../lib/formats/json-schema.ts'
import { listOf, mappingOf, strictMapping } from '../lib/formats/mapping-schema.ts'

const MAX_URL = 2_000
const MAX_KEYS = 20
const MAX_CLAIMS = 20
const MAX_CLAIM_NAME = 100
const MAX_NAME = 500
/** Allowed curves for each key type, for ES256 and EdDSA. RSA keys (RS256 and PS256) have no curve. */
const curves: Readonly<Record<string, readonly string[]>> = { EC: ['P-256'], OKP: ['Ed25519'] }
const MIN_RSA_BITS = 2048

const name = Text.refine((text) => text.trim() !== '', 'must not be blank').refine(
  (text) => text.length <= MAX_NAME,
  `must be at most ${MAX_NAME} characters`,
)

/**
 * The server checks the URL again when it fetches the keys, because the operator decides which hosts are
 * allowed.
 */
const KeySetUrl = z
  .string({ error: orMissing('must be a URL') })
  .max(MAX_URL, `must be at most ${MAX_URL} characters`)
  .refine(
    (text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol),
    'must be a URL that begins with https:// or http://',
  )
  .refine((text) => {
    const { username = '', password = '', hash = '' } = URL.canParse(text) ? new URL(text) : {}
    return `${username}${password}${hash}` === ''
  }, 'must not contain a user name, a password or a fragment (#)')

const PublicKey = z
  .custom<JsonWebKey>(isJsonObject, { error: 'must be a mapping' })
  .superRefine((key, ctx) => {
    const problem = findKeyProblem(key)
    if (problem !== undefined) ctx.addIssue({ code: 'custom', message: problem })
  })

/** Returns why a key cannot verify signatures; undefined if it can. */
export function findKeyProblem(key: JsonWebKey): string | undefined {
  if (key.kty === 'oct') return "must be a public key; for HS256, use the agent's visitor secret instead"
  if (key.d !== undefined) return 'must be a public key, without the private part `d`'
  const isKnown = key.kty === 'RSA' || curves[key.kty ?? '']?.includes(key.crv ?? '')
  if (!isKnown) return 'must be an RSA, P-256 or Ed25519 key'
  try {
    const { asymmetricKeyDetails } = createPublicKey({ key, format: 'jwk' })
    const { modulusLength = MIN_RSA_BITS } = asymmetricKeyDetails ?? {}
    return modulusLength < MIN_RSA_BITS ? `must have at least ${MIN_RSA_BITS} bits` : undefined
  } catch {
    return 'must be a valid public key'
  }
}

const KeySet = mappingOf(
  z.strictObject(
    {
      keys: listOf(PublicKey)
        .min(1, 'must have at least one key')
        .max(MAX_KEYS, `must have at most ${MAX_KEYS} keys`),
    },
    { error: strictMapping },
  ),
)

/**
 * The required issuer and audience of visitors' JWTs, and the keys that verify them. Without keys, the
 * agent's visitor secret verifies them.
 */
const Jwt = mappingOf(
  z
    .strictObject(
      {
        issuer: name.optional(),
        audience: name.optional(),
        jwksUrl: KeySetUrl.optional(),
        jwks: KeySet.optional(),
      },
      { error: strictMapping },
    )
    .superRefine(({ jwks, jwksUrl }, ctx) => {
      if (jwks !== undefined && jwksUrl !== undefined)
        ctx.addIssue({ code: 'custom', path: ['jwks'], message: 'must not be combined with jwksUrl' })
    }),
)

const Claims = listOf(
  Text.refine(
    (text) => text !== '' && text.length <= MAX_CLAIM_NAME,
    `must be 1 to ${MAX_CLAIM_NAME} characters`,
  ),
)
  .max(MAX_CLAIMS, `must have at most ${MAX_CLAIMS} claims`)
  .refine((claims) => new Set(claims).size === claims.length, 'must not repeat a claim')

/** Rejects unknown keys, because a misspelled key could admit visitors without an identity. */
export const AgentVisitors = mappingOf(
  z.strictObject(
    {
      identity: z
        .enum(['none', 'optional', 'required'], { error: 'must be `none`, `optional` or `required`' })
        .default('none'),
      jwt: Jwt.prefault({}),
      /** Names of the claims that the owner and tools receive. */
      claims: Claims.default([]),
    },
    { error: strictMapping },
  ),
)
export type AgentVisitors = z.infer<typeof AgentVisitors>

export const IdentityMode = z
  .enum(['none', 'optional', 'required'])
  .meta({ description: 'Whether visitors may or must prove their identity.' })
