/** Reads and writes a server's agents through its REST API, for `agents apply --url`. */
import { setTimeout as wait } from 'node:timers/promises'
import { z } from 'zod'
import type { NewVersion } from '../../agents/agents.ts'
import { readClientKey } from '../../config/parse.ts'
import { parseKey } from '../../lib/api-key.ts'
import { StartupError } from '../../lib/errors.ts'
import { printNotice, toVisible } from '../output.ts'
import type { AgentSummary, AgentTarget } from './agent-target.ts'

const CALL_MS = 30_000
const MOST_TRIES = 5
const LONGEST_PAUSE_SECONDS = 60
const PAGE = 100

const Summary = z.object({ id: z.string().min(1), name: z.string() })
const AgentPage = z.object({ data: z.array(Summary), has_more: z.boolean().optional() })
const Detail = z.object({
  yaml: z.string(),
  format: z.enum(['yaml', 'markdown']),
  version: z.int(),
  definition: z.object({ name: z.string() }),
})
const Created = z.object({ agent_id: z.string(), agent_key: z.string() })
const Updated = z.object({ agent_id: z.string() })
const Failure = z.object({ error: z.union([z.string(), z.object({ message: z.string() })]) })

const mediaTypes = { yaml: 'application/yaml', markdown: 'text/markdown' } as const

interface Call {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/**
 * Creates a target for the server at `url`. Without `givenKey`, uses the key in `PARLEY_KEY`.
 * @throws StartupError if the URL or the key is malformed, or if there is no key.
 */
export function createRemoteTarget(url: string, givenKey: string | undefined): AgentTarget {
  const base = parseUrl(url)
  const key = chooseKey(givenKey)
  const place = base.href.replace(/\/$/, '')

  async function call<T extends z.ZodType>(schema: T, request: Call): Promise<z.output<T>> {
    const response = await sendUntilAllowed(place, key, request)
    const text = await response.text().catch((cause) => {
      throw unreachable(place, request, cause)
    })
    const body = parseJson(text)
    if (!response.ok) throw toFailure(place, response, body)
    const { success, data } = schema.safeParse(body)
    if (success) return data
    throw new StartupError(`${place} did not respond like a Parley server. Check --url.`)
  }

  return {
    async list() {
      const all: AgentSummary[] = []
      let hasMore = true
      while (hasMore) {
        const after = all.length === 0 ? '' : `&after=${encodeURIComponent(all.at(-1)?.id ?? '')}`
        const path = `/v1/agents?order=asc&limit=${PAGE}${after}`
        const page = await call(AgentPage, { method: 'GET', path })
        all.push(...page.data)
        hasMore = page.has_more === true && page.data.length > 0
      }
      return all
    },
    async read(id) {
      const path = pathOf(id)
      const { yaml, definition, ...rest } = await call(Detail, { method: 'GET', path })
      return { id, name: definition.name, source: yaml, ...rest }
    },
    async create(version) {
      const created = await call(Created, { method: 'POST', path: '/v1/agents', ...render(version) })
      return { id: created.agent_id, agentKey: created.agent_key }
    },
    async replace({ id, version }, next) {
      const { headers, body } = render(next)
      const conditional = { ...headers, 'If-Match': `"${version}"` }
      await call(Updated, { method: 'PUT', path: pathOf(id), headers: conditional, body })
    },
  }
}

/** Renders the request; only a JSON body can contain a note. */
function render({ yaml, format, note }: NewVersion): Required<Pick<Call, 'headers' | 'body'>> {
  if (note === undefined) return { headers: { 'Content-Type': mediaTypes[format] }, body: yaml }
  return { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ yaml, format, note }) }
}

function pathOf(id: string): string {
  return `/v1/agents/${encodeURIComponent(id)}`
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new StartupError('--url must be a URL that starts with https:// or http://.')
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new StartupError('--url must not contain a user name, a query or a fragment.')
  const isHere = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname)
  if (url.protocol === 'http:' && !isHere)
    printNotice('warning: --url is not https://, so the parent key is sent unencrypted.')
  return url
}

/** Omits the given text from error messages, because it may be a secret. */
function chooseKey(given: string | undefined): string {
  const [text, source] = given === undefined ? [readClientKey(), 'PARLEY_KEY'] : [given.trim(), '--key']
  if (text === undefined || text === '')
    throw new StartupError('With --url, a parent key is required: set PARLEY_KEY, or use --key.')
  const kind = parseKey(text)?.kind
  if (kind === 'parent') return text
  const problem = kind === 'agent' ? 'is an agent key' : 'is not a complete key'
  throw new StartupError(`${source} ${problem}; with --url, it must be a complete parent key (svc_…).`)
}

/** Sends a request up to `MOST_TRIES` times, pausing as long as the server's rate limit requires. */
async function sendUntilAllowed(place: string, key: string, request: Call): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const response = await send(place, key, request)
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
    if (response.status !== 429 || tries >= MOST_TRIES || !(seconds <= LONGEST_PAUSE_SECONDS)) return response
    await response.body?.cancel()
    printNotice(`This key has reached its rate limit; continuing in ${seconds} s.`)
    await wait(seconds * 1000)
  }
}

async function send(place: string, key: string, request: Call): Promise<Response> {
  const { method, path, headers, body } = request
  try {
    return await fetch(place + path, {
      method,
      headers: { ...headers, Authorization: `Bearer ${key}` },
      ...(body !== undefined && { body }),
      // A redirect could send the key to another server, or turn a POST into a GET.
      redirect: 'manual',
      signal: AbortSignal.timeout(CALL_MS),
    })
  } catch (cause) {
    throw unreachable(place, request, cause)
  }
}

/** Error codes of connections that were never established, so the server cannot have received the request. */
const notConnected = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

function unreachable(place: string, { method }: Call, cause: unknown): StartupError {
  const error = cause as Error & { cause?: { code?: string; message?: string } }
  const isLate = error.name === 'TimeoutError'
  const code = error.cause?.code
  const reason = isLate
    ? `no response within ${CALL_MS / 1000} s`
    : (code ?? error.cause?.message ?? error.message)
  const doubt =
    method === 'GET' || notConnected.has(code ?? '') ? '' : ' The server may have made this change.'
  return new StartupError(`Cannot reach ${place} (${reason}).${doubt}`, { cause })
}

function toFailure(place: string, { status, headers }: Response, body: unknown): StartupError {
  if (status >= 300 && status < 400) {
    const to = toVisible(headers.get('location') ?? 'another address')
    return new StartupError(`${place} redirects to ${to}. Set --url to the server's own URL.`)
  }
  const { data } = Failure.safeParse(body)
  if (data === undefined)
    return new StartupError(
      `${place} responded with HTTP ${status}, but not like a Parley server. Check --url.`,
    )
  const message = toVisible(typeof data.error === 'string' ? data.error : data.error.message)
  if (status === 401)
    return new StartupError(`${place} rejected the key: ${message} Check --key or PARLEY_KEY.`)
  if (status >= 500) return new StartupError(`${place} responded with HTTP ${status}: ${message}`)
  return new StartupError(message)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
