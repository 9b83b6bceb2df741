/** Mints and verifies visitor tokens, without database access (ADR 0057, ADR 0074). */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { isJsonObject, parseJson } from '../lib/formats/json.ts'
import { newId, type Random } from '../lib/ids.ts'
import type { Sealer } from '../lib/sealer.ts'
import type { CallVisitor } from '../operations/operation.ts'

/** A visitor whose identity has been asserted by a JWT or by the agent's owner. */
export type IdentifiedVisitor = CallVisitor & { readonly kind: 'verified' | 'named' }

/** The agent or tenant for which a token is valid. */
interface TokenPlace {
  readonly tenantId: string
  readonly agentId: string
}

export interface VisitorTokens {
  newVisitorId(): string
  /** Returns an anonymous visitor's token for one agent. */
  mint(agentId: string, visitorId: string): MintedToken
  /** Returns a token that contains the identity. `expiresAt` is in Unix seconds. */
  mintIdentified(
    place: TokenPlace | Pick<TokenPlace, 'tenantId'>,
    visitor: IdentifiedVisitor,
    expiresAt: number,
  ): MintedToken
  /**
   * Returns the visitor; `expired` for an expired token with an identity, and undefined for any other token
   * that is invalid or expired, or belongs to a different agent.
   */
  find(place: TokenPlace, token: string): CallVisitor | 'expired' | undefined
  /** Returns the id of a visitor who is not stored. Each generation of an identity has a different id. */
  deriveId(
    tenantId: string,
    identity: Pick<CallVisitor, 'kind' | 'issuer' | 'subject'>,
    generation: number,
  ): string
}

export interface MintedToken {
  readonly token: string
  /** Unix seconds. */
  readonly expiresAt: number
}

const ID_LENGTH = 24
const PREFIX = 'vst_'
const VISITOR_PREFIX = 'vis_'
const LIFETIME_SECONDS = 30 * 86_400
const KEY_BYTES = 32
const KEY_PURPOSE = 'parley visitor token key'

const layout = /^vst_([0-9A-Za-z]{24})\.(\d{1,12})(?:\.([\w-]+))?\.([\w-]{43})$/

/**
 * Tokens are signed with HMAC-SHA256 and a key derived from the master key. Tokens signed with earlier keys
 * remain valid.
 */
export function createVisitorTokens({
  sealer,
  clock,
  random,
}: {
  readonly sealer: Pick<Sealer, 'derive' | 'deriveFormer'>
  readonly clock: Clock
  readonly random: Random
}): VisitorTokens {
  const newest = sealer.derive(KEY_PURPOSE, KEY_BYTES)
  const keys = [newest, ...sealer.deriveFormer(KEY_PURPOSE, KEY_BYTES)]
  const finish = (scope: string, body: string, expiresAt: number): MintedToken => ({
    token: `${body}.${sign(newest, scope, body).toString('base64url')}`,
    expiresAt,
  })

  return {
    newVisitorId: () => newId(VISITOR_PREFIX, ID_LENGTH, random),
    mint(agentId, visitorId) {
      const expiresAt = unixSeconds(clock) + LIFETIME_SECONDS
      return finish(agentId, bodyOf(visitorId, expiresAt), expiresAt)
    },
    mintIdentified(place, visitor, expiresAt) {
      const body = `${bodyOf(visitor.id, expiresAt)}.${encodeIdentity(visitor)}`
      return finish('agentId' in place ? place.agentId : scopeOfTenant(place.tenantId), body, expiresAt)
    },
    find({ tenantId, agentId }, token) {
      const [, id, expiresAt, identity, signature = ''] = layout.exec(token) ?? []
      if (id === undefined) return undefined
      const body = token.slice(0, -signature.length - 1)
      const given = Buffer.from(signature, 'base64url')
      // Accepts only the canonical encoding, because decoding ignores unused bits.
      if (given.toString('base64url') !== signature) return undefined
      const scopes = identity === undefined ? [agentId] : [agentId, scopeOfTenant(tenantId)]
      const isSigned = keys.some((key) =>
        scopes.some((scope) => timingSafeEqual(sign(key, scope, body), given)),
      )
      const isExpired = Number(expiresAt) <= unixSeconds(clock)
      if (!isSigned || (isExpired && identity === undefined)) return undefined
      if (isExpired) return 'expired'
      const visitorId = `${VISITOR_PREFIX}${id}`
      return identity === undefined ? toAnonymous(visitorId, agentId) : decodeIdentity(visitorId, identity)
    },
    deriveId(tenantId, { kind, issuer, subject }, generation) {
      const text = JSON.stringify([tenantId, kind, issuer, subject, generation])
      const bytes = createHmac('sha256', newest).update(`visitor id\n${text}`)
      let rest = BigInt(`0x${bytes.digest('hex')}`)
      let id = ''
      for (; id.length < ID_LENGTH; rest /= BASE) id += alphabet[Number(rest % BASE)]
      return `${VISITOR_PREFIX}${id}`
    },
  }
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const BASE = BigInt(alphabet.length)

/** Contains a space, so that it differs from the id of every agent. */
function scopeOfTenant(tenantId: string): string {
  return `tenant ${tenantId}`
}

function bodyOf(visitorId: string, expiresAt: number): string {
  return `${PREFIX}${visitorId.slice(VISITOR_PREFIX.length)}.${expiresAt}`
}

function toAnonymous(id: string, agentId: string): CallVisitor {
  return { id, kind: 'anonymous', issuer: agentId, subject: id, email: null, name: null, claims: {} }
}

function encodeIdentity({ id: _id, ...identity }: IdentifiedVisitor): string {
  return Buffer.from(JSON.stringify(identity)).toString('base64url')
}

function decodeIdentity(id: string, encoded: string): CallVisitor | undefined {
  const identity = parseJson(Buffer.from(encoded, 'base64url').toString())
  return isJsonObject(identity) ? ({ ...identity, id } as CallVisitor) : undefined
}

function sign(key: Buffer, scope: string, body: string): Buffer {
  return createHmac('sha256', key).update(`${scope}\n${body}`).digest()
}
