/** Mints and verifies the tokens of anonymous visitors, without database access (ADR 0057). */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { newId, type Random } from '../lib/ids.ts'
import type { Sealer } from '../lib/sealer.ts'

export interface VisitorTokens {
  newVisitorId(): string
  mint(agentId: string, visitorId: string): MintedToken
  /** Returns the visitor's id; undefined if the token is invalid or expired, or belongs to another agent. */
  find(agentId: string, token: string): string | undefined
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

const layout = /^vst_([0-9A-Za-z]{24})\.(\d{1,12})\.([\w-]{43})$/

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

  return {
    newVisitorId: () => newId(VISITOR_PREFIX, ID_LENGTH, random),
    mint(agentId, visitorId) {
      const expiresAt = unixSeconds(clock) + LIFETIME_SECONDS
      const body = `${PREFIX}${visitorId.slice(VISITOR_PREFIX.length)}.${expiresAt}`
      return { token: `${body}.${sign(newest, agentId, body).toString('base64url')}`, expiresAt }
    },
    find(agentId, token) {
      const [, id, expiresAt, signature = ''] = layout.exec(token) ?? []
      if (id === undefined || Number(expiresAt) <= unixSeconds(clock)) return undefined
      const body = token.slice(0, -signature.length - 1)
      const given = Buffer.from(signature, 'base64url')
      // Accepts only the canonical encoding, because decoding ignores unused bits.
      if (given.toString('base64url') !== signature) return undefined
      const isSigned = keys.some((key) => timingSafeEqual(sign(key, agentId, body), given))
      return isSigned ? `${VISITOR_PREFIX}${id}` : undefined
    },
  }
}

function sign(key: Buffer, agentId: string, body: string): Buffer {
  return createHmac('sha256', key).update(`${agentId}\n${body}`).digest()
}
