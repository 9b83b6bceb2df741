/** Throws an error if Node is too old; must be imported before all other modules. */

import { StartupError } from './lib/errors.ts'
import { findNodeTrouble } from './lib/node-version.ts'

const trouble = findNodeTrouble(process.versions.node)
if (trouble !== undefined) throw new StartupError(trouble)
