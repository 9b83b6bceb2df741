/** What the `keys` commands do: work on parent keys, beside a running server or without one. */
import { randomBytes } from 'node:crypto'
import { openDatabase, openOrCreateDatabase } from '../db/open.ts'
import type { Deps } from '../deps.ts'
import { createKeyDirectory } from '../keys/directory.ts'
import { mintKey, parseKey } from '../keys/format.ts'
import { createParentKey, listParentKeys, revokeParentKey, rotateParentKey } from '../keys/keys.ts'
import { StartupError } from '../startup-error.ts'
import { systemClock } from '../system-clock.ts'
import { print, printResult, renderTable, renderTime } from './output.ts'
import { readSettings } from './settings.ts'

type KeyDeps = Pick<Deps, 'db' | 'clock' | 'random' | 'keys'>

export function create(name: string, isJson: boolean): Promise<void> {
  return withKeys(async (deps) => {
    const key = await createParentKey(deps, name)
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
    if (isJson) return print(JSON.stringify(rows))
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
  return withKeys(async (deps) => {
    const { key, previousValidUntil } = await rotateParentKey(deps, toPublicId(id), overlapSeconds)
    const result = { id: key.publicId, key: key.text, previous_valid_until: previousValidUntil }
    printResult(isJson, result, key.text)
  })
}

export function revoke(id: string, isJson: boolean): Promise<void> {
  return withKeys(async (deps) => {
    const publicId = toPublicId(id)
    await revokeParentKey(deps, publicId)
    printResult(isJson, { id: publicId, revoked: true }, `revoked ${publicId}`)
  })
}

/**
 * Works on the keys of the data directory. With `create` it may be the first to use it, so that a key can be made before the first
 * start; whoever looks for keys where there are none has the wrong directory.
 */
async function withKeys(run: (deps: KeyDeps) => Promise<void>, ifNone?: 'create'): Promise<void> {
  const { dataDir } = await readSettings()
  if (dataDir === ':memory:') {
    throw new StartupError('PARLEY_DATA_DIR is :memory:, and no command sees the keys in a server’s memory.')
  }
  const opening =
    ifNone === 'create' ? openOrCreateDatabase(dataDir) : openDatabase({ dataDir, role: 'command' })
  const { db, close } = await opening
  try {
    const keys = createKeyDirectory(db, systemClock)
    await run({ db, clock: systemClock, random: randomBytes, keys })
  } finally {
    await close()
  }
}

/** The id, also where it was given with its prefix or as the whole key. What is none is not repeated: it may be a secret. */
function toPublicId(text: string): string {
  const [, id] = /^(?:svc_)?([0-9A-Za-z]{12})$/.exec(text) ?? []
  const key = parseKey(text)
  if (id !== undefined) return id
  if (key?.kind === 'parent') return key.publicId
  throw new StartupError('That is not the id of a parent key; `parley keys list` shows them.')
}
