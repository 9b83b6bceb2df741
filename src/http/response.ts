/** Defines the common response headers and writes response bodies. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { toBuffer } from '../lib/bytes.ts'
import { ChunkCounter, hasNoBody } from './request.ts'

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

export function toPairs(flat: readonly string[]): [name: string, value: string][] {
  return flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] as string]] : []))
}

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
  'X-Parley-Budget',
  'X-Parley-Degraded',
  'X-Should-Retry',
  'X-Parley-Stored',
  'X-Parley-Turn',
  'X-Parley-Conversation',
  'openai-processing-ms',
].join(', ')

/** Allows pages from any origin to read responses, because keys are sent in headers and never in cookies. */
export const crossOriginHeaders: readonly string[] = [
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Expose-Headers',
  exposedHeaders,
]

/**
 * Returns true if pages from any origin may call this path: all API paths except the console's `/v1/manager`
 * and `/trpc`.
 */
export function isOpenToOrigins(path: string): boolean {
  return /^\/(v1(?!\/manager(\/|$))|artifacts|upload|capabilities)(\/|$)/.test(path)
}

export function isAboutArtifacts(path: string): boolean {
  return /^\/(artifacts|upload|capabilities)(\/|$)/.test(path)
}

const allowedRequestHeader =
  /^(authorization|content-type|accept|upload-[a-z-]+|tus-resumable|x-stainless-[a-z-]+|openai-[a-z-]+|if-match|if-none-match|range|prefer|x-http-method-override|x-request-id|idempotency-key|last-event-id|x-parley-conversation|x-parley-visitor)$/

export function preflightHeaders(request: IncomingMessage): string[] {
  const requested = String(request.headers['access-control-request-headers'] ?? '').toLowerCase()
  const allowed = requested
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

export const STALL_MS = 120_000

/** Bytes as text, one character per byte. Joining such text costs less than copying bytes to a new buffer. */
export type Latin1 = string

/**
 * Larger bodies are written separately from the headers, because a second write is cheaper than copying them.
 */
const MAX_COPIED_BYTES = 16 * 1024

/**
 * Ends a response with its body. Sends small bodies as text, because Node then writes headers and body
 * together, which saves CPU time.
 */
export function endWith(response: ServerResponse, body: readonly Uint8Array[]): void {
  const last = body.at(-1)
  for (let at = 0; at < body.length - 1; at++) response.write(body[at])
  if (last === undefined || last.length > MAX_COPIED_BYTES) response.end(last)
  else response.end(toLatin1(last), 'latin1')
  if (response.writableLength > 0) response.setTimeout(STALL_MS, () => response.destroy())
}

/**
 * Writes one chunk together with its HTTP framing (RFC 9112, section 7.1), because Node's own framing costs
 * more CPU time; returns false if the client reads too slowly.
 */
export function writeChunk(response: ServerResponse, bytes: Uint8Array | Latin1): boolean {
  const isText = typeof bytes === 'string'
  if (!response.chunkedEncoding) return isText ? response.write(bytes, 'latin1') : response.write(bytes)
  if (!isText && bytes.length > MAX_COPIED_BYTES) return response.write(bytes)
  const text = isText ? bytes : toLatin1(bytes)
  response.chunkedEncoding = false
  const isRead = response.write(`${text.length.toString(16)}\r\n${text}\r\n`, 'latin1')
  response.chunkedEncoding = true
  return isRead
}

/** Converts bytes to Latin-1 text, which preserves every byte. */
function toLatin1(bytes: Uint8Array): string {
  return toBuffer(bytes).toString('latin1')
}

const LINGERING_CLOSE_MS = 1_000
const LINGERING_CLOSE_BYTES = 16 * 1024 ** 2

export function isStillSending(request: IncomingMessage): boolean {
  return !request.complete && !hasNoBody(request)
}

/**
 * Writes the response, but ends it only after the request's body, because closing the connection earlier could
 * reset it before the client has read the response.
 */
export function endAfterBody(
  request: IncomingMessage,
  response: ServerResponse,
  body: readonly Uint8Array[],
): void {
  for (const piece of body) response.write(piece)
  const end = () => response.end()
  request.once('end', end).once('close', end)
  discardBody(request, () => request.destroy())
}

/**
 * Reads and discards the rest of the request, up to 16 MiB. Calls `onStop` when it stops reading, and
 * `onTimeout` if the request has not ended after a second.
 */
export function discardBody(
  request: IncomingMessage,
  onTimeout: () => void,
  onStop: () => void = () => {},
): void {
  const counter = new ChunkCounter()
  const timer = setTimeout(onTimeout, LINGERING_CLOSE_MS)
  const onData = (chunk: Uint8Array) => {
    counter.add(chunk)
    // Node parses tiny chunks even while the request is paused.
    if (counter.isTooFine) request.destroy()
    if (counter.bytes <= LINGERING_CLOSE_BYTES) return
    request.off('data', onData).pause()
    onStop()
  }
  const onEnd = () => {
    clearTimeout(timer)
    onStop()
  }
  request.once('end', onEnd).once('close', onEnd).on('data', onData).resume()
}

export interface PageFile {
  readonly body: { readonly text: string } | { readonly folder: string; readonly name: string }
  readonly headers: Readonly<Record<string, string>>
}

export const IMMUTABLE = 'public, max-age=31536000, immutable'

export const pageHeaders: readonly string[] = ['Content-Type', 'text/html; charset=utf-8', ...noStore]

export const pageSecurityHeaders: readonly string[] = securityHeaders.with(
  securityHeaders.indexOf('Content-Security-Policy') + 1,
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "font-src 'self'",
    "media-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
)
