/** The `parley` command: reads its words and runs what they name. */
import { Command, CommanderError } from 'commander'
import packageJson from '../package.json' with { type: 'json' }
import { keysCommand } from './cli/keys.ts'
import { migrate } from './cli/migrate.ts'
import { openapi } from './cli/openapi.ts'
import { printNotice, printResult } from './cli/output.ts'
import { serve } from './cli/serve.ts'
import { ServiceError } from './errors.ts'
import { StartupError } from './startup-error.ts'

const program = new Command('parley')
  .description('Self-hosted conversational agents behind a chat API.')
  .exitOverride()
  .configureOutput({ writeErr: (text) => printNotice(text.trimEnd()) })

program.command('serve').description('run the service').action(serve)
program.addCommand(keysCommand())
program
  .command('migrate')
  .description('bring the database to this version and stop; `serve` does it by itself')
  .option('--json', 'print JSON')
  .action(({ json }) => migrate(json))
program
  .command('openapi')
  .description('print the OpenAPI document')
  .option('--check', 'compare it with openapi.json instead; fails when they differ')
  .action(({ check }) => openapi(check))
program
  .command('version')
  .description('print the version')
  .option('--json', 'print JSON')
  .action(({ json }) => printResult(json, { version: packageJson.version }, packageJson.version))

try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = explain(error)
}

/** Says what went wrong in a sentence where it is the operator's to mend, and gives the exit code. */
function explain(error: unknown): number {
  // Commander has printed its own words already: help asked for, or a word it does not know.
  if (error instanceof CommanderError) return error.exitCode
  if (error instanceof StartupError || error instanceof ServiceError) {
    printNotice(`parley: ${error.message}`)
    return 1
  }
  throw error
}
