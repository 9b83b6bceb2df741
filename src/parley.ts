#!/usr/bin/env node
/** The `parley` command as it is installed: a Node that is too old is refused with a sentence, before it meets what it cannot read. */
import { findNodeTrouble } from './lib/node-version.ts'

const trouble = findNodeTrouble(process.versions.node)
if (trouble === undefined) await import('./main.ts')
else {
  process.stderr.write(`parley: ${trouble}\n`)
  process.exitCode = 1
}
