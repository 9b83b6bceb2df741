/** The words of the `parley` command, and how it ends when something goes wrong. */

import { Command, CommanderError, InvalidArgumentError } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { ServiceError, StartupError } from '../lib/errors.ts'
import { addAgentsCommands } from './commands/agents.ts'
import { addKeysCommands } from './commands/keys.ts'
import { printNotice, printResult } from './output.ts'

/** Each has 20 connections to the database. */
const MOST_WORKERS = 64

/** Runs what the words name; what goes wrong is told on standard error and in the process's exit code. */
export async function runCommand(words: readonly string[]): Promise<void> {
  // Whoever stopped reading, as `| head` does, fails a command and must not stop a server.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', fail)
  try {
    await createProgram().parseAsync(words)
  } catch (error) {
    process.exitCode = explain(error)
  }
}

function fail(): void {
  process.exitCode = 1
}

/** A command's code is loaded when it is run: most need little of the service. */
function createProgram(): Command {
  const program = new Command('parley')
    .description('Self-hosted conversational agents behind a chat API.')
    .version(packageJson.version)
    .exitOverride()
  program
    .command('serve')
    .description('run the service')
    .option('--workers <count>', 'how many processes answer, on PostgreSQL only', parseWorkers, 1)
    .action(async ({ workers }) => (await import('./commands/serve.ts')).serve(workers))
  program
    .command('sign-in')
    .description('print a link that signs in to the console, once and within 15 minutes')
    .option('--json', 'print JSON')
    .action(async ({ json }) => (await import('./commands/sign-in.ts')).signIn(json))
  addKeysCommands(program.command('keys').description('create, list, rotate and revoke parent keys'))
  addAgentsCommands(program.command('agents').description('list, read, apply, export and delete agents'))
  program
    .command('doctor')
    .description('check this machine, the settings and the data, and say what to do')
    .option('--json', 'print JSON')
    .action(async ({ json }) => (await import('./commands/doctor.ts')).doctor(json))
  program
    .command('migrate')
    .description('bring the database to this version and stop; `serve` does it by itself')
    .option('--json', 'print JSON')
    .action(async ({ json }) => (await import('./commands/migrate.ts')).migrate(json))
  program
    .command('backup <archive>')
    .description('write all rows and files into one archive (.tar, .tar.gz, .tar.zst; - for standard output)')
    .option('--json', 'print JSON')
    .action(async (archive, { json }) => (await import('./commands/backup.ts')).backup(archive, json))
  program
    .command('restore <archive>')
    .description('fill an empty data directory from an archive (- for standard input)')
    .option('--json', 'print JSON')
    .action(async (archive, { json }) => (await import('./commands/restore.ts')).restore(archive, json))
  addStoreCommands(program.command('store').description('move the rows, and repair what belongs to them'))
  program
    .command('openapi')
    .description('print the OpenAPI document')
    .option('--check', 'compare it with openapi.json instead; fails when they differ')
    .action(async ({ check }) => (await import('./commands/openapi.ts')).openapi(check))
  program
    .command('version')
    .description('print the version')
    .option('--json', 'print JSON')
    .action(({ json }) => printResult(json, { version: packageJson.version }, packageJson.version))
  return program
}

function addStoreCommands(store: Command): void {
  store
    .command('copy')
    .description(
      'copy the data directory’s rows into the empty PostgreSQL database of DATABASE_URL, and compare',
    )
    .option('--json', 'print JSON')
    .action(async ({ json }) => (await import('./commands/store-copy.ts')).storeCopy(json))
  store
    .command('adopt')
    .description('mark the stored files as belonging to this database, whatever installation they were of')
    .option('--json', 'print JSON')
    .action(async ({ json }) => (await import('./commands/store-adopt.ts')).storeAdopt(json))
  store
    .command('orphans')
    .description('count the stored files that no row names')
    .option('--delete', 'delete them for good')
    .option('--json', 'print JSON')
    .action(async (options) => (await import('./commands/store-orphans.ts')).storeOrphans(options))
}

function parseWorkers(text: string): number {
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > MOST_WORKERS) throw new InvalidArgumentError(`it takes 1 to ${MOST_WORKERS}`)
  return count
}

/** Says what went wrong in a sentence where it is the operator's to mend, and gives the exit code. */
function explain(error: unknown): number {
  // Commander has printed its own words already: help asked for, or a word it does not know.
  if (error instanceof CommanderError) return error.exitCode
  const sentence = sentenceOf(error)
  if (sentence === undefined) throw error
  printNotice(`parley: ${sentence}`)
  return 1
}

/** What is ours to say, and what the machine refused: a full disk, a locked database, a name without a resolver. */
function sentenceOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (error instanceof StartupError || error instanceof ServiceError) return error.message
  if (error.name === 'SqliteError') return `The database cannot be used now (${error.message}).`
  return 'syscall' in error ? `The system refused: ${error.message}.` : undefined
}
