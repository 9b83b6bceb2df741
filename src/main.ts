/** The process edge of the `parley` command: has Node keep compiled code between starts, then runs the command's words. */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

// Beside the packages, where only who installed them writes; where nobody may write, Node does without. It saves a third of a
// start, and counts for what is loaded after it only, hence the import below.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/parley', import.meta.url)))

const { runCommand } = await import('./cli/program.ts')
await runCommand(process.argv)
