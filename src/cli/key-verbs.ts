/** What the `keys` commands do: work on parent keys, beside a running server or without one. */
import { randomBytes } from 'node:crypto'
import type { Actor } from '../audit/actor.ts'
import type { AuditDeps } from '../audit/audit.ts'
import type { Deps } from '../deps.ts'
import { createKeyDirectory } from '../keys/directory.ts'
import { mintKey } from '../keys/format.ts'
import { createParentKey, listParentKeys, revokeParentKey, rotateParentKey } from '../keys/keys.ts'
import { createPositions } from '../lib/clock.ts'
import { systemClock } from '../system-clock.ts'
import { commandActor } from './actor.ts'
import { withDatabase } from './database.ts'
import { print, printResult, renderTable, renderTime } from './output.ts'
import { toPublicId } from './parent-key.ts'

type KeyDeps = AuditDeps & Pick<Deps, 'clock' | 'keys'>

export function create(name: string, isJson: boolean): Promise<void> {
  return withKeys(async (deps, actor) => {
    const key = await createParentKey(deps, actor, name)
    printResult(isJson, { id: key.publicId, name, key: key.text }, key.text)
  }, 'create')
}

export function generate(isJson: boolean): void {
  const key = mintKey('parent', randomBytes)
  printResult(isJson, { id: key.publicId, key: key.text }, key.text)
}

export function list(isJson: boolean): Promise<void> {
  return withKeys(async (deps) => {
    const rows = await listParentKeys(deps)
    if (isJson) {
      return print(JSON.stringify(rows.map((row) => ({ ...row, is_automatic: row.is_automatic === 1 }))))
    }
    const cells = rows.map((row) => [
      row.id,
      row.name,
      row.hint,
      renderTime(row.created_at),
      renderTime(row.last_used_at),
      row.revoked_at === null ? 'active' : `revoked ${renderTime(row.revoked_at)}`,
    ])
    print(renderTable(['ID', 'NAME', 'KEY', 'CREATED', 'LAST USED', 'STATE'], cells))
  })
}

export function rotate(id: string, overlapSeconds: number, isJson: boolean): Promise<void> {
  return withKeys(async (deps, actor) => {
    const { key, previousValidUntil } = await rotateParentKey(deps, actor, toPublicId(id), overlapSeconds)
    const result = { id: key.publicId, key: key.text, previous_valid_until: previousValidUntil }
    printResult(isJson, result, key.text)
  })
}

export function revoke(id: string, isJson: boolean): Promise<void> {
  return withKeys(async (deps, actor) => {
    const publicId = toPublicId(id)
    await revokeParentKey(deps, actor, publicId)
    printResult(isJson, { id: publicId, revoked: true }, `revoked ${publicId}`)
  })
}

/** Works on the keys; one can be created before the first start. */
function withKeys(run: (deps: KeyDeps, actor: Actor) => Promise<void>, ifNone?: 'create'): Promise<void> {
  return withDatabase(async (db) => {
    const keys = createKeyDirectory(db, systemClock)
    const nextPosition = createPositions(systemClock)
    await run({ db, clock: systemClock, random: randomBytes, nextPosition, keys }, commandActor())
  }, ifNone)
}
