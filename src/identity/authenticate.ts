/** Authenticates requests by key, token, session or proxy headers, and caches keys and users. */
import { timingSafeEqual } from 'node:crypto'
import type { Database } from '../db/database.ts'
import type { ImplicitCredentials } from '../http/request.ts'
import { digestOf, parseKey } from '../lib/api-key.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { createTtlCache } from '../lib/ttl-cache.ts'
import type { Authenticator, Caller, ParentCaller, TokenCaller } from '../operations/operation.ts'
import type { Trace } from './audit.ts'
import type { Dependencies } from './dependencies.ts'
import {
  type FoundCredential,
  findCredential,
  findParentKey,
  markUsed,
  ownLimitsOf,
  type ParentKeyRow,
  stateOf,
} from './key-store.ts'
import { type Identity, readIdentity } from './proxy-sign-in.ts'
import { isSession, localAdministrator, readSessionDigest } from './sessions.ts'
import { findOrCreateUser } from './users.ts'

export interface CredentialStores {
  readonly keys: KeyDirectory
  readonly tokens: { find(text: string): Promise<TokenCaller | undefined> }
  readonly users: UserDirectory
}

export function createAuthenticator({ keys, tokens, users }: CredentialStores): Authenticator {
  return {
    find(metadata) {
      const text = metadata.bearer ?? metadata.token
      if (text?.startsWith(PREFIX)) return tokens.find(text)
      if (metadata.bearer !== undefined) return keys.find(metadata.bearer)
      return metadata.implicit === undefined ? undefined : users.find(metadata.implicit, metadata)
    },
  }
}

export const PREFIX = 'atk_'

/**
 * Lifetime of cached callers, and therefore the longest time that a key stays valid after another replica
 * revokes it.
 */
const KNOWN_FOR_MS = 2_000
const UNKNOWN_FOR_MS = 1_000
const MOST_CACHED = 20_000

/** Minimum time between two writes of a key's last use. */
const LAST_USED_EVERY_SECONDS = 60

export interface KeyDirectory {
  /** Returns a key's caller, or undefined if the key is malformed, unknown, expired, disabled or revoked. */
  find(key: string): Caller | undefined | Promise<Caller | undefined>
  /** Returns true if the tenant's parent key exists and is not expired, disabled or revoked. */
  isLive(tenantId: string): Promise<boolean>
  /** Drops all cached keys; must be called after every change to keys or agents. */
  invalidate(): void
  onInvalidate(listener: () => void): void
  /** Records that a console user has used a parent key. The console itself sends no key. */
  noteUse(tenantId: string): void
  recordUse(): Promise<void>
}

/** Finds keys through a cache; changes made by other processes take effect within two seconds. */
export function createKeyDirectory(db: Database, clock: Clock): KeyDirectory {
  const remembered = createTtlCache<FoundCredential | undefined>(clock, {
    max: MOST_CACHED,
    keepMs: (credential) => (credential === undefined ? UNKNOWN_FOR_MS : KNOWN_FOR_MS),
  })
  const parentKeys = createTtlCache<ParentKeyRow | undefined>(clock, {
    max: MOST_CACHED,
    keepMs: (row) => (row === undefined ? UNKNOWN_FOR_MS : KNOWN_FOR_MS),
  })
  const used = new Set<string>()
  const listeners: (() => void)[] = []
  const recordedAt = new Map<string, number>()

  async function load(key: string, digest: string): Promise<FoundCredential | undefined> {
    if (!isWellFormed(key)) return undefined
    const found = await findCredential(db, digest)
    return found !== undefined && isSame(found.digest, digest) ? found : undefined
  }

  function toCaller(credential: FoundCredential | undefined): Caller | undefined {
    if (credential === undefined) return undefined
    if (credential.validUntil !== null && credential.validUntil <= unixSeconds(clock)) return undefined
    used.add(credential.caller.tenantId)
    return credential.caller
  }

  return {
    find(key) {
      const digest = digestOf(key)
      const credential = remembered.get(digest, () => load(key, digest))
      return credential instanceof Promise ? credential.then(toCaller) : toCaller(credential)
    },
    async isLive(tenantId) {
      const row = await parentKeys.get(tenantId, () => findParentKey(db, tenantId))
      return row !== undefined && stateOf(row, unixSeconds(clock)) === 'active'
    },
    invalidate() {
      remembered.invalidate()
      parentKeys.invalidate()
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

/** Also returns false for scoped keys, because they are reserved and not in use yet. */
function isWellFormed(key: string): boolean {
  const kind = parseKey(key)?.kind
  return kind === 'parent' || kind === 'agent'
}

function isSame(digest: string, other: string): boolean {
  return digest.length === other.length && timingSafeEqual(Buffer.from(digest), Buffer.from(other))
}

export interface UserDirectory {
  /**
   * Finds or creates the user and their key; returns undefined if the request identifies no user. @throws
   * ServiceError `invalid_value` for an ambiguous identity.
   */
  find(implicit: ImplicitCredentials, trace: Trace): Promise<ParentCaller | undefined>
  /**
   * Drops all cached users; must be called after every change to users. Invalidating the keys also drops
   * them.
   */
  invalidate(): void
}

/** Finds users through a cache; changes made by other processes take effect within two seconds. */
export function createUserDirectory(
  deps: Pick<Dependencies, 'config' | 'db' | 'clock' | 'random' | 'nextPosition'> & {
    readonly keys: KeyDirectory
  },
): UserDirectory {
  const { config, clock, keys } = deps
  const remembered = createTtlCache<ParentCaller | undefined>(clock, {
    max: MOST_CACHED,
    keepMs: () => KNOWN_FOR_MS,
  })
  keys.onInvalidate(remembered.invalidate)

  async function findUser(implicit: ImplicitCredentials, trace: Trace): Promise<ParentCaller | undefined> {
    const digest = readSessionDigest(implicit.headers, config)
    if (digest !== undefined)
      return remembered.get(digest, async () =>
        (await isSession(deps, digest)) ? toCaller(localAdministrator, true, trace) : undefined,
      )
    const identity = readIdentity(implicit, config)
    if (identity === undefined) return undefined
    return remembered.get(identity.email, () =>
      toCaller(identity, config.adminEmails.includes(identity.email), trace),
    )
  }

  async function toCaller(identity: Identity, isAdministrator: boolean, trace: Trace): Promise<ParentCaller> {
    const { id, email, active_key_id: tenantId } = await findOrCreateUser(deps, identity, trace)
    const key = await findParentKey(deps.db, tenantId)
    return { kind: 'parent', tenantId, user: { id, email, isAdministrator }, ...(key && ownLimitsOf(key)) }
  }

  return {
    async find(implicit, trace) {
      const found = await findUser(implicit, trace)
      if (found !== undefined) keys.noteUse(found.tenantId)
      return found
    },
    invalidate: remembered.invalidate,
  }
}
