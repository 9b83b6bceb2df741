/** Stops a program that loads the service on a Node that is too old, with a sentence. To be imported before everything else. */

import { StartupError } from './lib/errors.ts'
import { findNodeTrouble } from './lib/node-version.ts'

const trouble = findNodeTrouble(process.versions.node)
if (trouble !== undefined) throw new StartupError(trouble)
