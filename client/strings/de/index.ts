/** Contains the console's German strings, by area. */
import type { Translation } from '../catalogue.ts'
import { bin } from './bin.ts'
import { common } from './common.ts'
import { conversations } from './conversations.ts'
import { files } from './files.ts'
import { firstRun } from './first-run.ts'
import { keys } from './keys.ts'
import { shell } from './shell.ts'
import { things } from './things.ts'
import { uploads } from './uploads.ts'

export const de: Translation = { common, things, shell, firstRun, keys, conversations, bin, uploads, files }
