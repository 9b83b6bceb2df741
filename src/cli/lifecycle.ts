/** Renders the text that announces the first parent key, and stops server processes after uncaught errors. */
import type { Logger } from 'pino'
import { serviceActor } from '../identity/audit.ts'
import { createSignInLink, renderSignInUrl } from '../identity/sessions.ts'
import type { Service } from '../server/service.ts'
import { commandName } from './output.ts'

const CRASH_DRAIN_MS = 5_000

/**
 * Returns the text to print, or undefined if no parent key was created. `link` resolves to undefined if a
 * proxy authenticates users.
 */
export function createWelcome({ firstParentKey, url, deps }: Service) {
  if (firstParentKey === undefined) return undefined
  const key = `
Your first parent key, shown only once. Keep it on your servers:

  ${firstParentKey}

API reference: ${url}/docs`
  return { key, link: createLink(deps, url) }
}

async function createLink(deps: Service['deps'], url: string): Promise<string | undefined> {
  if (deps.config.forwardedAuth !== undefined) return undefined
  const link = await createSignInLink(deps, serviceActor)
  return `
To sign in to the console, open this link within 15 minutes. It works once; \`${commandName} sign-in\` prints another:

  ${renderSignInUrl(deps.config.server.publicUrl ?? url, link)}`
}

/**
 * After an uncaught error, finishes open requests and exits, because the process may be in an invalid state.
 */
export function stopOnCrash(service: Service, log: Logger): void {
  const crash = (error: unknown) => {
    log.fatal({ err: error }, 'uncaught error; stopping')
    setTimeout(() => process.exit(1), CRASH_DRAIN_MS).unref()
    service.close().finally(() => process.exit(1))
  }
  process.once('uncaughtException', crash)
  process.once('unhandledRejection', crash)
}
