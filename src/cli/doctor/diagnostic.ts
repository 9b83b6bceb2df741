/** Defines the result of one `parley doctor` check. */
import { StartupError } from '../../lib/errors.ts'

/** `warn` needs attention; `fail` prevents the server from starting or working. */
export interface Diagnostic {
  readonly check: string
  readonly state: 'ok' | 'warn' | 'fail'
  readonly message: string
}

export const ok = (check: string, message: string): Diagnostic => ({ check, state: 'ok', message })
export const warn = (check: string, message: string): Diagnostic => ({ check, state: 'warn', message })
export const fail = (check: string, message: string): Diagnostic => ({ check, state: 'fail', message })

export async function failOnStartupError(
  check: string,
  run: () => Promise<Diagnostic[]>,
): Promise<Diagnostic[]> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return [fail(check, error.message)]
  }
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
