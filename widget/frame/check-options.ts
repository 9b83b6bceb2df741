/** Validates the options that only the frame uses, beyond their types. */
import { checkHeaders } from '../check-headers.ts'
import type { FrameOptions } from '../options.ts'
import { publicPartOf } from '../values.ts'
import { toHex } from './theme.ts'

interface CheckedOptions {
  readonly options: FrameOptions
  /** One sentence per problem, for the page's developer; does not contain option values. */
  readonly problems: readonly string[]
}

/** Drops headers that cannot be used. `ownOrigin` is the frame's origin. */
export function checkOptions(given: FrameOptions, ownOrigin: string): CheckedOptions {
  const { headers: _headers, ...options } = given
  const { headers, problems } = checkHeaders(given, ownOrigin)
  const colors = (['primaryColor', 'headerColor'] as const).filter(
    (name) => given[name] !== undefined && toHex(given[name]) === undefined,
  )
  return {
    options: headers === undefined ? options : { ...options, headers },
    problems: [...colors, ...problems],
  }
}

/**
 * Returns whether the frame must be reloaded with this key in its address. The server uses the key in the
 * address to decide which pages may show the frame.
 */
export function needsOtherAddress({ apiKey }: FrameOptions, addressKey: string): boolean {
  const publicKey = publicPartOf(apiKey)
  return publicKey !== '' && publicKey !== addressKey
}
