/** The `sign-in` command: prints a fresh one-time link to the console, beside a running server. */
import { randomBytes } from 'node:crypto'
import type { Config } from '../../config/config.ts'
import { createSignInLink, renderSignInUrl } from '../../identity/sessions.ts'
import { createPositions, systemClock } from '../../lib/clock.ts'
import { StartupError } from '../../lib/errors.ts'
import { withDatabase } from '../database.ts'
import { printResult } from '../output.ts'
import { commandActor } from '../parent-key.ts'

/** @throws StartupError where a proxy signs people in. Decision: 10. */
export function signIn(isJson: boolean): Promise<void> {
  return withDatabase(async (db, config) => {
    if (config.forwardedAuth !== undefined) {
      throw new StartupError(
        'A proxy signs people in here (PARLEY_TRUST_FORWARDED_AUTH); open the console through it.',
      )
    }
    const nextPosition = createPositions(systemClock)
    const deps = { db, clock: systemClock, random: randomBytes, nextPosition }
    const link = await createSignInLink(deps, commandActor())
    const url = renderSignInUrl(consoleBaseOf(config), link)
    printResult(isJson, { url, expires_at: link.expiresAt }, url)
  })
}

/** Where a browser on this machine finds the server that these settings make. */
function consoleBaseOf({ server }: Config): string {
  const { host, port, publicUrl } = server
  if (publicUrl !== undefined) return publicUrl
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}
