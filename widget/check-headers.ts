/** Checks the headers that a page sets for `endpoint`. */
import type { FrameOptions } from './options.ts'

type HeaderOptions = Pick<FrameOptions, 'headers' | 'endpoint'>

interface CheckedHeaders {
  /** The headers that can be sent. */
  readonly headers: Readonly<Record<string, string>> | undefined
  /** One sentence per problem, for the page's developer; does not contain option values. */
  readonly problems: readonly string[]
}

/**
 * Drops headers that cannot be sent or that would replace the agent key. `ownOrigin` is the frame's origin.
 */
export function checkHeaders({ headers, endpoint }: HeaderOptions, ownOrigin: string): CheckedHeaders {
  if (headers === undefined || Object.keys(headers).length === 0) return { headers: undefined, problems: [] }
  if (endpoint === undefined)
    return { headers: undefined, problems: ['headers: set `endpoint` too; headers are sent only there.'] }
  const isOwn = URL.canParse(endpoint, ownOrigin) && new URL(endpoint, ownOrigin).origin === ownOrigin
  const problems: string[] = []
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
  return { headers: kept, problems }
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
