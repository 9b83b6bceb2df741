/** What every process that runs the service does: print the first key, and stop after a crash. */
import type { Logger } from 'pino'
import { serviceActor } from '../identity/audit.ts'
import { createSignInLink, renderSignInUrl } from '../identity/sessions.ts'
import type { Service } from '../server/service.ts'
import { commandName } from './output.ts'

const CRASH_DRAIN_MS = 5_000

/** What the first start prints, else undefined: the first key at once, then a sign-in link unless a proxy authenticates users. */
export function createWelcome({ firstParentKey, url, deps }: Service) {
  if (firstParentKey === undefined) return undefined
  const key = `
Your first parent key, shown only now; keep it on servers:

  ${firstParentKey}

API reference: ${url}/docs`
  return { key, link: createLink(deps, url) }
}

async function createLink(deps: Service['deps'], url: string): Promise<string | undefined> {
  if (deps.config.forwardedAuth !== undefined) return undefined
  const link = await createSignInLink(deps, serviceActor)
  return `
Sign in to the console once, within 15 minutes (for another link: ${commandName} sign-in):

  ${renderSignInUrl(deps.config.server.publicUrl ?? url, link)}`
}

/** After an uncaught error the state is unknown: finish open requests, then exit so that the supervisor starts a new process. */
export function stopOnCrash(service: Service, log: Logger): void {
  const crash = (error: unknown) => {
    log.fatal({ err: error }, 'uncaught error; stopping')
    setTimeout(() => process.exit(1), CRASH_DRAIN_MS).unref()
    service.close().finally(() => process.exit(1))
  }
  process.once('uncaughtException', crash)
  process.once('unhandledRejection', crash)
}
