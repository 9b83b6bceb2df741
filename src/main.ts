/** Runs the `parley` command. Handles stop signals, enables the compile cache, then runs the command line. */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { listenForStopSignals } from './cli/signals.ts'

// All other commands use Node's default signal handling.
if (process.argv[2] === 'serve') listenForStopSignals()

// Caches compiled code, so that later imports load faster. If the folder is not writable, Node continues
// without the cache.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/parley', import.meta.url)))

const { runCommand } = await import('./cli/program.ts')
await runCommand(process.argv)
