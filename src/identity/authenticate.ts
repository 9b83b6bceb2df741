/** Finds the caller behind the credentials of a request: a key, a token, a session, or what a proxy says. */

import { timingSafeEqual } from 'node:crypto'
import type { Database } from '../db/database.ts'
import type { Ambient } from '../http/request.ts'
import { digestOf, parseKey } from '../lib/api-key.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { createRemembered } from '../lib/ttl-cache.ts'
import type { Arrival, Authenticator, Caller, ParentCaller, TokenCaller } from '../operations/operation.ts'
import { type FoundCredential, findCredential, findParentKey, markUsed } from './key-store.ts'

export interface CredentialStores {
  readonly keys: KeyDirectory
  readonly tokens: { find(text: string): Promise<TokenCaller | undefined> }
  readonly users: { find(credentials: Ambient, trace: Arrival): Promise<ParentCaller | undefined> }
}

export function createAuthenticator({ keys, tokens, users }: CredentialStores): Authenticator {
  return {
    find(arrival) {
      const text = arrival.bearer ?? arrival.token
      if (text !== undefined && isToken(text)) return tokens.find(text)
      if (arrival.bearer !== undefined) return keys.find(arrival.bearer)
      return arrival.ambient === undefined ? undefined : users.find(arrival.ambient, arrival)
    },
  }
}

/** A token is this, the name of the secret it was signed with, what it says, and the signature. */
export const PREFIX = 'atk_'

/** Whether a credential is meant to be such a token, good or not. */
export function isToken(text: string): boolean {
  return text.startsWith(PREFIX)
}

/** How long a look-up may be answered from memory, in milliseconds. Security: 2.1. */
const KNOWN_FOR_MS = 2_000

const UNKNOWN_FOR_MS = 1_000

/** At most one write per key and minute tells when a key was last used. */
const LAST_USED_EVERY_SECONDS = 60

const REMEMBERED = 20_000

export interface KeyDirectory {
  /** The caller that key stands for; undefined when it is malformed, unknown, expired or revoked. */
  find(key: string): Promise<Caller | undefined>
  /** Whether the tenant's parent key was not revoked. */
  isLive(tenantId: string): Promise<boolean>
  /** Forgets everything remembered: called after every change to keys or agents. */
  invalidate(): void
  /** Whoever remembers something about keys besides forgets it together with them. */
  onInvalidate(listener: () => void): void
  /** Notes the use of a parent key that was not presented. */
  noteUse(tenantId: string): void
  /** Writes down which keys were used since the last time. */
  recordUse(): Promise<void>
}

/** A directory over one database; its memory is kept at most two seconds, so other processes' changes count by then. */
export function createKeyDirectory(db: Database, clock: Clock): KeyDirectory {
  const remembered = createRemembered<FoundCredential | undefined>(clock, {
    max: REMEMBERED,
    keepMs: (credential) => (credential === undefined ? UNKNOWN_FOR_MS : KNOWN_FOR_MS),
  })
  const live = createRemembered<boolean>(clock, {
    max: REMEMBERED,
    keepMs: (isLive) => (isLive ? KNOWN_FOR_MS : UNKNOWN_FOR_MS),
  })
  const used = new Set<string>()
  const listeners: (() => void)[] = []
  const recordedAt = new Map<string, number>()

  async function lookUp(key: string, digest: string): Promise<FoundCredential | undefined> {
    return isWellFormed(key) ? findCredential(db, digest) : undefined
  }

  return {
    async find(key) {
      const digest = digestOf(key)
      const credential = await remembered.get(digest, () => lookUp(key, digest))
      if (credential === undefined || !isSame(credential.digest, digest)) return undefined
      if (credential.validUntil !== null && credential.validUntil <= unixSeconds(clock)) return undefined
      used.add(credential.caller.tenantId)
      return credential.caller
    },
    isLive: (tenantId) =>
      live.get(tenantId, async () => (await findParentKey(db, tenantId))?.revoked_at === null),
    invalidate() {
      remembered.forget()
      live.forget()
      for (const listener of listeners) listener()
    },
    onInvalidate: (listener) => void listeners.push(listener),
    noteUse: (tenantId) => void used.add(tenantId),
    async recordUse() {
      const now = unixSeconds(clock)
      const due = [...used].filter((id) => now - (recordedAt.get(id) ?? 0) >= LAST_USED_EVERY_SECONDS)
      used.clear()
      if (due.length === 0) return
      for (const id of due) recordedAt.set(id, now)
      await markUsed(db, due, now)
    },
  }
}

/** Scoped keys are reserved: well-formed, but never anybody's. Decision: 5. */
function isWellFormed(key: string): boolean {
  const kind = parseKey(key)?.kind
  return kind === 'parent' || kind === 'agent'
}

function isSame(digest: string, other: string): boolean {
  return digest.length === other.length && timingSafeEqual(Buffer.from(digest), Buffer.from(other))
}
