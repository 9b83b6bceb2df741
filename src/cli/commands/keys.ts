/** The `keys` commands create, list, rotate and revoke parent keys. */
import { randomBytes } from 'node:crypto'
import type { Actor } from '../../identity/audit.ts'
import { createParentKey, listParentKeys, revokeParentKey, rotateParentKey } from '../../identity/keys.ts'
import { mintKey } from '../../lib/api-key.ts'
import { commandActor, createDeps, toPublicId, withDatabase } from '../installation.ts'
import { print, printResult, renderTable, renderTime } from '../output.ts'

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

/** With `create`, creates a missing database, because the first key may be needed before the first server start. */
function withKeys(
  run: (deps: ReturnType<typeof createDeps>, actor: Actor) => Promise<void>,
  ifMissing?: 'create',
): Promise<void> {
  return withDatabase((db, _config, clock) => run(createDeps(db, clock), commandActor()), ifMissing)
}
