/** Finds the user of a request without a key, through a cache. */

import type { ImplicitCredentials } from '../http/request.ts'
import { createTtlCache } from '../lib/ttl-cache.ts'
import type { ParentCaller } from '../operations/operation.ts'
import type { Trace } from './audit.ts'
import type { KeyDirectory } from './authenticate.ts'
import type { Dependencies } from './dependencies.ts'
import { type Identity, readIdentity } from './proxy-sign-in.ts'
import { isSession, localAdministrator, readSessionDigest } from './sessions.ts'
import { findOrCreateUser } from './users.ts'

export interface UserDirectory {
  /** The user, who then has a key; undefined when the request identifies none. @throws ServiceError `invalid_value` for an ambiguous identity. */
  find(implicit: ImplicitCredentials, trace: Trace): Promise<ParentCaller | undefined>
  /** Drops all cached users; called after every change to users. Changes to keys do this automatically. */
  invalidate(): void
}

/** Changes by other processes take effect after at most two seconds. */
export function createUserDirectory(
  deps: Pick<Dependencies, 'config' | 'db' | 'clock' | 'random' | 'nextPosition'> & {
    readonly keys: KeyDirectory
  },
): UserDirectory {
  const { config, clock, keys } = deps
  const remembered = createTtlCache<ParentCaller | undefined>(clock, { max: 20_000, keepMs: () => 2_000 })
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
    return { kind: 'parent', tenantId, user: { id, email, isAdministrator } }
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
