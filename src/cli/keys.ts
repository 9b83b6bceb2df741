/** The words of the `keys` commands. */
import { type Command, InvalidArgumentError } from 'commander'

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

const verbs = () => import('./key-verbs.ts')

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
