/**
 * The process edge of the `parley` command: hears the signals to stop, has Node keep compiled code between starts, then runs the
 * command's words.
 */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { hearStopSignals } from './cli/signals.ts'

// Other commands end as every program does.
if (process.argv[2] === 'serve') hearStopSignals()

// Beside the packages, where only who installed them writes; where nobody may write, Node does without. It saves a third of a
// start, and counts for what is loaded after it only, hence the import below.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/parley', import.meta.url)))

const { runCommand } = await import('./cli/program.ts')
await runCommand(process.argv)
