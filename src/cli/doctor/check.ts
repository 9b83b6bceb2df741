/** What a check of `parley doctor` comes to. */

/** `warn` is worth a look; with `fail` a server does not start, or does not work. */
export interface Finding {
  readonly check: string
  readonly state: 'ok' | 'warn' | 'fail'
  /** What was found and, unless it is well, what to do. */
  readonly message: string
}

export const ok = (check: string, message: string): Finding => ({ check, state: 'ok', message })
export const warn = (check: string, message: string): Finding => ({ check, state: 'warn', message })
export const fail = (check: string, message: string): Finding => ({ check, state: 'fail', message })

/** What an error says of itself. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
