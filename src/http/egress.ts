/**
 * Sends requests to servers that tenants choose. Allows only public addresses over https, unless the operator
 * allows more, and does not follow redirects.
 */
import type { LookupFunction } from 'node:net'
import { Agent, request } from 'undici'
import { type AddressBlock, createCheckedConnector, isPrivateAddress, isWithin } from '../lib/net.ts'

/** A host name in lower case, or a range of addresses, that the operator has allowed. */
export type EgressTarget = string | AddressBlock

export interface EgressOptions {
  readonly allow: readonly EgressTarget[]
  readonly lookup?: LookupFunction | undefined
}

export interface EgressRequest {
  readonly method: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Timeout for the whole exchange, in milliseconds. */
  readonly timeoutMs: number
  /** Maximum number of response bytes to read; the rest is discarded. */
  readonly maxBytes: number
}

export interface EgressResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
  /** Whether the response was longer than `maxBytes`. */
  readonly isCut: boolean
}

const CONNECT_MS = 10_000
const MAX_URL_LENGTH = 2_000

/**
 * Returns why a URL must not be called, or undefined. A URL needs https, port 443 and a public host, unless
 * the operator allows its host. The client checks the addresses of a host name for each connection.
 */
export function findUrlProblem(text: string, allow: readonly EgressTarget[]): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || text.length > MAX_URL_LENGTH)
    return `must be a URL of at most ${MAX_URL_LENGTH} characters, such as https://example.org/hook`
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or a password'
  if (url.hash !== '') return 'must not contain a fragment (#)'
  const isListed = isAllowedHost(url.hostname, allow)
  if (url.protocol !== 'https:' && !(isListed && url.protocol === 'http:')) return 'must start with https://'
  if (isListed) return undefined
  if (url.port !== '') return 'must use port 443'
  const isLocal = /(^|\.)localhost\.?$/.test(url.hostname)
  if (isLocal || isPrivateAddress(url.hostname)) return 'must not be a private, local or metadata address'
  return undefined
}

function isAllowedHost(hostname: string, allow: readonly EgressTarget[]): boolean {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
  return allow.includes(bare) || isWithin(bare, blocksOf(allow))
}

function blocksOf(allow: readonly EgressTarget[]): AddressBlock[] {
  return allow.filter((target) => typeof target !== 'string')
}

/** Sends requests, and checks each address before it connects to it. */
export class EgressClient {
  private readonly allow: readonly EgressTarget[]
  private readonly agent: Agent

  constructor({ allow, lookup }: EgressOptions) {
    this.allow = allow
    const blocks = blocksOf(allow)
    const connect = createCheckedConnector(CONNECT_MS, {
      isRejected: (address) => isPrivateAddress(address) && !isWithin(address, blocks),
      isExempt: (hostname) => isAllowedHost(hostname, allow),
      lookup,
    })
    this.agent = new Agent({ connect, connections: 8, pipelining: 0 })
  }

  /** @throws Error if the URL is not allowed, or the server does not respond in time */
  async send(url: string, { timeoutMs, maxBytes, ...options }: EgressRequest): Promise<EgressResponse> {
    const problem = findUrlProblem(url, this.allow)
    if (problem !== undefined) throw new Error(`The URL ${problem}.`)
    const signal = AbortSignal.timeout(timeoutMs)
    const { statusCode, headers, body } = await request(url, { ...options, signal, dispatcher: this.agent })
    const pieces: Buffer[] = []
    let size = 0
    for await (const piece of body) {
      pieces.push(piece)
      size += piece.length
      // Leaving the loop closes the connection.
      if (size > maxBytes) break
    }
    return {
      status: statusCode,
      headers,
      body: Buffer.concat(pieces).subarray(0, maxBytes),
      isCut: size > maxBytes,
    }
  }

  async close(): Promise<void> {
    await this.agent.destroy()
  }
}
