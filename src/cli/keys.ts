/** The `keys` commands: parent keys, beside a running server or without one. */
import { randomBytes } from 'node:crypto'
import { Command, InvalidArgumentError } from 'commander'
import { loadConfig } from '../config.ts'
import { hasDatabase } from '../db/data-directory.ts'
import { openDatabase } from '../db/open.ts'
import type { Deps } from '../deps.ts'
import { createKeyDirectory } from '../keys/directory.ts'
import { mintKey } from '../keys/format.ts'
import { createParentKey, listParentKeys, revokeParentKey, rotateParentKey } from '../keys/keys.ts'
import { systemClock } from '../service.ts'
import { print, printResult, renderTable, renderTime } from './output.ts'

type KeyDeps = Pick<Deps, 'db' | 'clock' | 'random' | 'keys'>

/** `parley keys …` */
export function keysCommand(): Command {
  const keys = new Command('keys').description('create, list, rotate and revoke parent keys')
  keys
    .command('create')
    .description('create a parent key and print it, this once')
    .requiredOption('--name <name>', 'what the key is for', parseName)
    .option('--json', 'print JSON')
    .action(({ name, json }) =>
      withKeys(async (deps) => {
        const key = await createParentKey(deps, name)
        printResult(json, { id: key.publicId, name, key: key.text }, key.text)
      }),
    )
  keys
    .command('generate')
    .description('print a well-formed parent key without registering it (for PARLEY_PARENT_KEY)')
    .option('--json', 'print JSON')
    .action(({ json }) => {
      const key = mintKey('parent', randomBytes)
      printResult(json, { id: key.publicId, key: key.text }, key.text)
    })
  keys
    .command('list')
    .description('list parent keys; never their secrets')
    .option('--json', 'print JSON')
    .action(({ json }) => withKeys((deps) => list(deps, json)))
  keys
    .command('rotate <id>')
    .description('give a parent key a new secret and print it, this once')
    .option('--overlap <seconds>', 'how long the old secret keeps working', parseOverlap, 0)
    .option('--json', 'print JSON')
    .action((id, { overlap, json }) =>
      withKeys(async (deps) => {
        const { key, previousValidUntil } = await rotateParentKey(deps, toPublicId(id), overlap)
        printResult(json, { id: key.publicId, key: key.text, previousValidUntil }, key.text)
      }),
    )
  keys
    .command('revoke <id>')
    .description('end a parent key and the keys of its agents, for good')
    .option('--json', 'print JSON')
    .action((id, { json }) =>
      withKeys(async (deps) => {
        await revokeParentKey(deps, toPublicId(id))
        printResult(json, { id: toPublicId(id), revoked: true }, `revoked ${toPublicId(id)}`)
      }),
    )
  return keys
}

/** Without a database yet this makes one, so that a key can be made before the first start. */
async function withKeys(run: (deps: KeyDeps) => Promise<void>): Promise<void> {
  const { config } = await loadConfig()
  const role = (await hasDatabase(config.dataDir)) ? 'command' : 'server'
  const { db, close } = await openDatabase({ dataDir: config.dataDir, role })
  try {
    const keys = createKeyDirectory(db, systemClock)
    await run({ db, clock: systemClock, random: randomBytes, keys })
  } finally {
    await close()
  }
}

async function list(deps: KeyDeps, isJson: boolean): Promise<void> {
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
}

/** The id alone, also where the public part was given with its prefix, or the whole key. */
function toPublicId(text: string): string {
  return text.replace(/^svc_/, '').slice(0, 12)
}

function parseName(text: string): string {
  const name = text.trim()
  if (name === '' || [...name].length > 200) throw new InvalidArgumentError('a name has 1 to 200 characters')
  return name
}

function parseOverlap(text: string): number {
  const seconds = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN
  if (!(seconds <= 2_592_000)) throw new InvalidArgumentError('it takes 0 to 2592000 seconds')
  return seconds
}
