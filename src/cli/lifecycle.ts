/** What a running service tells and does, in the only process there is or in one of several. */
import type { Logger } from 'pino'
import { serviceActor } from '../identity/audit.ts'
import { createSignInLink, renderSignInUrl } from '../identity/sessions.ts'
import type { Service } from '../server/service.ts'
import { commandName } from './output.ts'

/** After a crash, so long for answers under way. Security: 2.4. */
const CRASH_DRAIN_MS = 5_000

/** What a first start tells: its key at once, and a link to sign in with where people need one. Decision: 2 (First start). */
export interface Beginning {
  readonly key: string
  readonly link: Promise<string | undefined>
}

/** Undefined when it is no first start. */
export function describeBeginning({ firstParentKey, url, deps }: Service): Beginning | undefined {
  if (firstParentKey === undefined) return undefined
  const key = `
Your first parent key, shown this once; keep it on servers only:

  ${firstParentKey}

API reference: ${url}/docs`
  return { key, link: describeLink(deps, url) }
}

async function describeLink(deps: Service['deps'], url: string): Promise<string | undefined> {
  if (deps.config.forwardedAuth !== undefined) return undefined
  const signInUrl = renderSignInUrl(
    deps.config.server.publicUrl ?? url,
    await createSignInLink(deps, serviceActor),
  )
  return `
Sign in to the console, once and within 15 minutes (later: ${commandName} sign-in):

  ${signInUrl}`
}

/** What whoever stops the service is told. */
export function noticeOf(signal: NodeJS.Signals): string {
  return `${signal}: stopping; running answers may end first (once more to stop at once)`
}

/** After an error nobody caught nothing is certain: let answers end, then have the supervisor start afresh. */
export function stopOnCrash(service: Service, log: Logger): void {
  const crash = (error: unknown) => {
    log.fatal({ err: error }, 'an error was not caught; stopping')
    setTimeout(() => process.exit(1), CRASH_DRAIN_MS).unref()
    service.close().finally(() => process.exit(1))
  }
  process.once('uncaughtException', crash)
  process.once('unhandledRejection', crash)
}
