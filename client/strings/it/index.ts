/** Contains the console's Italian strings, by area. */
import type { Translation } from '../catalogue.ts'
import { admin } from './admin.ts'
import { agents } from './agents.ts'
import { audit } from './audit.ts'
import { bin } from './bin.ts'
import { budgets } from './budgets.ts'
import { common } from './common.ts'
import { conversations } from './conversations.ts'
import { editor } from './editor.ts'
import { embed } from './embed.ts'
import { files } from './files.ts'
import { firstRun } from './first-run.ts'
import { keys } from './keys.ts'
import { policy } from './policy.ts'
import { prices } from './prices.ts'
import { providers } from './providers.ts'
import { shell } from './shell.ts'
import { things } from './things.ts'
import { trial } from './trial.ts'
import { uploads } from './uploads.ts'
import { usage } from './usage.ts'
import { visitors } from './visitors.ts'
import { webhooks } from './webhooks.ts'

export const it: Translation = {
  common,
  things,
  shell,
  firstRun,
  keys,
  conversations,
  visitors,
  webhooks,
  bin,
  uploads,
  files,
  usage,
  budgets,
  admin,
  audit,
  policy,
  providers,
  prices,
  embed,
  agents,
  editor,
  trial,
}
