/** Validates the options that only the frame uses, beyond their types. */
import type { FrameOptions } from '../options.ts'
import { publicPartOf } from '../values.ts'
import { toHex } from './theme.ts'

interface CheckedOptions {
  readonly options: FrameOptions
  /** One sentence per problem, for the page's developer; does not contain option values. */
  readonly problems: readonly string[]
}

/** Drops headers that cannot be sent or that would replace the agent key. `ownOrigin` is the frame's origin. */
export function checkOptions(given: FrameOptions, ownOrigin: string): CheckedOptions {
  const { headers, ...options } = given
  const problems: string[] = []
  for (const name of ['primaryColor', 'headerColor'] as const)
    if (given[name] !== undefined && toHex(given[name]) === undefined) problems.push(name)
  if (headers === undefined || Object.keys(headers).length === 0) return { options, problems }
  if (options.endpoint === undefined)
    return { options, problems: [...problems, 'headers: set `endpoint` too; headers are sent only there.'] }
  const isOwn =
    URL.canParse(options.endpoint, ownOrigin) && new URL(options.endpoint, ownOrigin).origin === ownOrigin
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (isOwn && name.trim().toLowerCase() === 'authorization')
      problems.push('headers: `Authorization` is not sent to this server; set `apiKey` to the agent key.')
    else if (isSendable(name, value)) kept[name] = value
    else
      problems.push(
        `headers: \`${renderName(name)}\` has an invalid name or value, or browsers do not let pages set it.`,
      )
  }
  return { options: { ...options, headers: kept }, problems }
}

function isSendable(name: string, value: unknown): boolean {
  try {
    return typeof value === 'string' && new Request('/', { headers: [[name, value]] }).headers.has(name)
  } catch {
    return false
  }
}

function renderName(name: string): string {
  return name.replaceAll(/[^\w-]/g, '?').slice(0, 64)
}

/**
 * Returns whether the frame must be reloaded with this key in its address. The server uses the key in the address
 * to decide which pages may show the frame.
 */
export function needsOtherAddress({ apiKey }: FrameOptions, addressKey: string): boolean {
  const publicKey = publicPartOf(apiKey)
  return publicKey !== '' && publicKey !== addressKey
}
