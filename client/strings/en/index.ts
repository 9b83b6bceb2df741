/** Contains the console's texts in English, by area; the other languages have the same keys. */
import { common } from './common.ts'
import { things } from './things.ts'
import { shell } from './shell.ts'
import { firstRun } from './first-run.ts'
import { keys } from './keys.ts'
import { conversations } from './conversations.ts'
import { bin } from './bin.ts'

export const en = { common, things, shell, firstRun, keys, conversations, bin } as const

export type Catalogue = typeof en
