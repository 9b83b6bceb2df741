#!/usr/bin/env node
/**
 * Starts the installed `parley` command, or reports that Node is too old before loading code that it cannot
 * parse.
 */
import { findNodeTrouble } from './lib/node-version.ts'

const trouble = findNodeTrouble(process.versions.node)
if (trouble === undefined) await import('./main.ts')
else {
  process.stderr.write(`parley: ${trouble}\n`)
  process.exitCode = 1
}
