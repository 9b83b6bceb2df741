/** The `sign-in` command prints a new one-time sign-in link for the console. */
import type { Config } from '../../config/config.ts'
import { createSignInLink, renderSignInUrl } from '../../identity/sessions.ts'
import { StartupError } from '../../lib/errors.ts'
import { commandActor, createDeps, withDatabase } from '../installation.ts'
import { printResult } from '../output.ts'

export function signIn(isJson: boolean): Promise<void> {
  return withDatabase(async (db, config, clock) => {
    if (config.forwardedAuth !== undefined) {
      throw new StartupError(
        'The proxy authenticates users (PARLEY_TRUST_FORWARDED_AUTH=true). Open the console through the proxy.',
      )
    }
    const link = await createSignInLink(createDeps(db, clock), commandActor())
    const url = renderSignInUrl(toConsoleUrl(config.server), link)
    printResult(isJson, { url, expires_at: link.expiresAt }, url)
  })
}

/** Returns the public URL if one is configured, otherwise a URL for a browser on this machine. */
function toConsoleUrl({ host, port, publicUrl }: Config['server']): string {
  if (publicUrl !== undefined) return publicUrl
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}
