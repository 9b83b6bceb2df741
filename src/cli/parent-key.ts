/** Which parent key a command works for, and how operators name one. */

import { userInfo } from 'node:os'
import type { Database } from '../db/database.ts'
import type { Actor } from '../identity/audit.ts'
import { listParentKeys } from '../identity/keys.ts'
import { parseKey } from '../lib/api-key.ts'
import { StartupError } from '../lib/errors.ts'

/**
 * The id, also where it was given with its prefix or as the whole key. What is none is not repeated: it may be a secret.
 * @throws StartupError
 */
export function toPublicId(text: string): string {
  const [, id] = /^(?:svc_)?([0-9A-Za-z]{12})$/.exec(text) ?? []
  const key = parseKey(text)
  if (id !== undefined) return id
  if (key?.kind === 'parent') return key.publicId
  throw new StartupError('That is not the id of a parent key; `parley keys list` shows them.')
}

/**
 * The id of the key that was named, else of the only one there is.
 * @throws StartupError when it cannot be used, or nothing was named and there is none or more than one.
 */
export async function chooseParentKey(db: Database, named: string | undefined): Promise<string> {
  const active = (await listParentKeys({ db })).filter((row) => row.revoked_at === null)
  if (named !== undefined) {
    const id = toPublicId(named)
    if (active.some((row) => row.id === id)) return id
    throw new StartupError(
      `There is no parent key '${id}' that could be used; \`parley keys list\` shows them.`,
    )
  }
  const [only, ...others] = active
  if (only === undefined) {
    throw new StartupError('There is no active parent key; `parley keys create --name <name>` makes one.')
  }
  if (others.length === 0) return only.id
  const candidates = active.map(({ id, name }) => `${id} (${name})`).join(', ')
  throw new StartupError(`There are several parent keys; choose one with --key: ${candidates}.`)
}

/** The operating system's user; a container may run as one that has a number only. */
export function commandActor(): Actor {
  return { kind: 'command', name: userName(), requestId: null, clientAddress: null }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
