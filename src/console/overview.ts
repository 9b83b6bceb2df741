/** Tells callers of the console who they are and what they have. */
import { getParentKey, listKeysOfUser, type ParentKeyRow } from '../identity/keys.ts'
import { localAdministrator } from '../identity/sessions.ts'
import { findUserByEmail, type UserRow } from '../identity/users.ts'
import type { ParentCaller } from '../operations/operation.ts'
import type { Dependencies } from './dependencies.ts'

/** What a call shows who is calling by: a key, a proxy's word, or the cookie that a one-time link has left. */
export type SignedInBy = 'key' | 'proxy' | 'link'

export interface Overview {
  /** Undefined for whoever presents a key. */
  readonly user: UserRow | undefined
  readonly isAdministrator: boolean
  readonly signedInBy: SignedInBy
  /** The user's keys, newest first, or the one presented. */
  readonly keys: readonly ParentKeyRow[]
  readonly activeKeyId: string
  readonly agentCount: number
}

export async function readOverview(
  deps: Pick<Dependencies, 'db' | 'agents'>,
  { tenantId, user }: ParentCaller,
): Promise<Overview> {
  return {
    user: user === undefined ? undefined : await findUserByEmail(deps.db, user.email),
    isAdministrator: user?.isAdministrator ?? false,
    signedInBy: findSignedInBy(user?.email),
    keys: user === undefined ? [await getParentKey(deps, tenantId)] : await listKeysOfUser(deps, user.id),
    activeKeyId: tenantId,
    agentCount: (await deps.agents.list(tenantId)).length,
  }
}

function findSignedInBy(email: string | undefined): SignedInBy {
  if (email === undefined) return 'key'
  return email === localAdministrator.email ? 'link' : 'proxy'
}
