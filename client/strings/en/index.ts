/** Contains the console's English strings, by area; the other languages have the same keys. */

import { bin } from './bin.ts'
import { common } from './common.ts'
import { conversations } from './conversations.ts'
import { files } from './files.ts'
import { firstRun } from './first-run.ts'
import { keys } from './keys.ts'
import { shell } from './shell.ts'
import { things } from './things.ts'
import { uploads } from './uploads.ts'

export const en = { common, things, shell, firstRun, keys, conversations, bin, uploads, files } as const

export type Catalogue = typeof en
