/** The words of the `keys` commands. */

import { randomBytes } from 'node:crypto'
import { type Command, InvalidArgumentError } from 'commander'
import type { Actor, AuditDeps } from '../../identity/audit.ts'
import { createKeyDirectory } from '../../identity/authenticate.ts'
import { createParentKey, listParentKeys, revokeParentKey, rotateParentKey } from '../../identity/keys.ts'
import { mintKey } from '../../lib/api-key.ts'
import { createPositions, systemClock } from '../../lib/clock.ts'
import type { Deps } from '../../server/dependencies.ts'
import { withDatabase } from '../database.ts'
import { print, printResult, renderTable, renderTime } from '../output.ts'
import { commandActor, toPublicId } from '../parent-key.ts'

/** Fills `parley keys …` in; like every command's, the code behind the words is loaded when it is run. */
export function addKeysCommands(keys: Command): void {
  keys
    .command('create')
    .description('create a parent key and print it, this once')
    .requiredOption('--name <name>', 'what the key is for', parseName)
    .option('--json', 'print JSON')
    .action(async ({ name, json }) => (await verbs()).create(name, json))
  keys
    .command('generate')
    .description('print a well-formed parent key without registering it (for PARLEY_PARENT_KEY)')
    .option('--json', 'print JSON')
    .action(async ({ json }) => (await verbs()).generate(json))
  keys
    .command('list')
    .description('list parent keys; never their secrets')
    .option('--json', 'print JSON')
    .action(async ({ json }) => (await verbs()).list(json))
  keys
    .command('rotate <id>')
    .description('give a parent key a new secret and print it, this once')
    .option('--overlap <seconds>', 'how long the old secret keeps working', parseOverlap, 0)
    .option('--json', 'print JSON')
    .action(async (id, { overlap, json }) => (await verbs()).rotate(id, overlap, json))
  keys
    .command('revoke <id>')
    .description('end a parent key and the keys of its agents, for good')
    .option('--json', 'print JSON')
    .action(async (id, { json }) => (await verbs()).revoke(id, json))
}

const verbs = () => import('./keys.ts')

function parseName(text: string): string {
  const name = text.trim()
  if (name === '' || [...name].length > 200 || /[\p{Cc}\p{Cs}\u2028\u2029]/u.test(name)) {
    throw new InvalidArgumentError('a name has 1 to 200 characters and stands on one line')
  }
  return name
}

function parseOverlap(text: string): number {
  const seconds = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN
  if (!(seconds <= 2_592_000)) throw new InvalidArgumentError('it takes 0 to 2592000 seconds')
  return seconds
}

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
