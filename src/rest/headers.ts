/** The headers every REST answer carries: security, cross-origin access, the request id; and who the client is. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import ipaddr from 'ipaddr.js'
import { type AddressBlock, isWithin } from '../address-blocks.ts'

/** Security: 2.7, as a flat list for `writeHead`. */
export const securityHeaders: readonly string[] = [
  'Content-Security-Policy',
  "default-src 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options',
  'nosniff',
  'Referrer-Policy',
  'no-referrer',
  'Vary',
  'Authorization, Origin, Access-Control-Request-Headers',
]

/** A flat list as names with their values. */
export function toPairs(flat: readonly string[]): [name: string, value: string][] {
  return flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] as string]] : []))
}

/** Answers about one caller are for that caller alone. */
export const noStore: readonly string[] = ['Cache-Control', 'no-store']

const exposedHeaders = [
  'Location',
  'Upload-Offset',
  'Upload-Length',
  'Upload-Expires',
  'Tus-Resumable',
  'Tus-Version',
  'Tus-Extension',
  'Tus-Max-Size',
  'X-Request-Id',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'Retry-After',
  'X-Artifact-Id',
  'Protocol-Version',
  'ETag',
  'Content-Range',
  'X-Parley-Provider',
  'X-Parley-Attempts',
  'X-Parley-Fallback',
  'openai-processing-ms',
].join(', ')

/** Any origin may read the answers: tokens travel in headers, never in cookies. Decision: 3 (CORS). */
export const crossOriginHeaders: readonly string[] = [
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Expose-Headers',
  exposedHeaders,
]

/** The console's part of `/v1` is for its own origin only. Decision: 3 (CORS). */
export function isOpenToOrigins(path: string): boolean {
  return !/^\/v1\/manager(\/|$)/.test(path)
}

const allowedRequestHeader =
  /^(authorization|content-type|accept|upload-[a-z-]+|tus-resumable|x-stainless-[a-z-]+|openai-[a-z-]+|if-match|if-none-match|range|prefer|x-http-method-override|x-request-id|idempotency-key)$/

/** The answer to a preflight: the methods, and those of the asked-for headers that are allowed. Decision: 12. */
export function preflightHeaders(request: IncomingMessage): string[] {
  const asked = String(request.headers['access-control-request-headers'] ?? '').toLowerCase()
  const allowed = asked
    .split(',')
    .map((name) => name.trim())
    .filter((name) => allowedRequestHeader.test(name))
  return [
    'Access-Control-Allow-Methods',
    'GET, HEAD, POST, PUT, PATCH, DELETE',
    'Access-Control-Allow-Headers',
    allowed.join(', ') || 'Authorization, Content-Type',
    'Access-Control-Max-Age',
    '7200',
  ]
}

/** The caller's own request id when it is a sane one, else a new one. Decision: 3. */
export function requestIdOf(request: IncomingMessage): string {
  const sent = request.headers['x-request-id']
  return typeof sent === 'string' && /^[\w.:-]{1,128}$/.test(sent) ? sent : randomUUID()
}

/** The token of `Authorization: Bearer`, the only place a credential is read from. Decision: 3 (Credentials). */
export function bearerOf(request: IncomingMessage): string | undefined {
  const header = request.headers.authorization
  if (header === undefined || !/^bearer /i.test(header)) return undefined
  return header.slice(7).trim()
}

/**
 * The token in the address of an artifact: where a header cannot be set, such as in a page's `<video>`. Only what is read can be asked
 * for so. Decision: 9.
 */
export function tokenOf({ method, url = '' }: IncomingMessage): string | undefined {
  if (method !== 'GET' && method !== 'HEAD') return undefined
  if (!/^\/artifacts\/[^?]*\?/.test(url)) return undefined
  return new URLSearchParams(url.slice(url.indexOf('?'))).get('token') ?? undefined
}

/**
 * The client's address: the peer's, or, as long as that is a trusted proxy, the one it saw itself, read from the right end of
 * `X-Forwarded-For`. Decision: 3.
 */
export function clientAddressOf(request: IncomingMessage, trusted: readonly AddressBlock[]): string {
  let client = plainAddress(request.socket.remoteAddress ?? '')
  if (trusted.length === 0) return client
  const forwarded = String(request.headers['x-forwarded-for'] ?? '').split(',')
  while (isWithin(client, trusted)) {
    const seen = forwarded.pop()?.trim() ?? ''
    if (!ipaddr.isValid(seen)) break
    client = ipaddr.process(seen).toString()
  }
  return client
}

/** IPv4 as IPv4, also where the socket is a dual-stack one. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') ? address.slice(7) : address
}

/** A client that waits to be asked for its body is asked once it is known who it is. */
export function askForBody({ headers, httpVersion }: IncomingMessage, response: ServerResponse): void {
  if (headers.expect?.toLowerCase() === '100-continue' && httpVersion === '1.1') response.writeContinue()
}
