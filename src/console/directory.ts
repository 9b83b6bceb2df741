/** Finds the user behind a request without a key, from memory where it can. */
import type { Trace } from '../audit/actor.ts'
import { createRemembered } from '../db/remembered.ts'
import type { Deps } from '../deps.ts'
import type { ParentCaller } from '../keys/schema.ts'
import { type Ambient, readIdentity } from './identity.ts'
import { visit } from './users.ts'

/** As long as a key is. Security: 2.1. */
const memory = { max: 20_000, keepMs: () => 2_000 }

export interface UserDirectory {
  /**
   * The user, at home with a key of their own; undefined when the request tells of none.
   * @throws ServiceError `invalid_value` when what it tells could mean two things.
   */
  find(ambient: Ambient, trace: Trace): Promise<ParentCaller | undefined>
  /** Forgets everything remembered: called after every change to users; a change to keys does it by itself. */
  forget(): void
}

/** A directory over one database; other processes' changes count two seconds later. */
export function createUserDirectory(
  deps: Pick<Deps, 'config' | 'db' | 'clock' | 'random' | 'nextPosition' | 'keys'>,
): UserDirectory {
  const { config, clock, keys } = deps
  const remembered = createRemembered<ParentCaller>(clock, memory)
  keys.onForget(remembered.forget)

  return {
    async find(ambient, trace) {
      const identity = readIdentity(ambient, config)
      if (identity === undefined) return undefined
      const { email } = identity
      const caller = await remembered.get(email, async () => {
        const user = await visit(deps, identity, trace)
        const isAdministrator = config.adminEmails.includes(email)
        return { kind: 'parent', tenantId: user.active_key_id, user: { id: user.id, email, isAdministrator } }
      })
      keys.noteUse(caller.tenantId)
      return caller
    },
    forget: remembered.forget,
  }
}
