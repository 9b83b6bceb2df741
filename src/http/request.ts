/** Reads requests: who they say they come from, and their bodies. */

import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import ipaddr from 'ipaddr.js'
import type { Clock } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { outlineOf } from '../lib/formats/json.ts'
import { type AddressBlock, isWithin } from '../lib/net.ts'

/** What a request without a key can be known by. */
export interface Ambient {
  readonly method: string
  /** Of the socket, whoever its headers say is behind it. */
  readonly peerAddress: string
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[]
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
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') ? address.slice(7) : address
}

/** A client that waits to be asked for its body is asked once it is known who it is. */
export function askForBody({ headers, httpVersion }: IncomingMessage, response: ServerResponse): void {
  if (headers.expect?.toLowerCase() === '100-continue' && httpVersion === '1.1') response.writeContinue()
}

/** What a request can be known by; undefined where only a key counts. Decision: 10. */
export function ambientOf(request: IncomingMessage): Ambient | undefined {
  const { method = '', url = '', headers, rawHeaders, socket } = request
  if (!/^\/(v1\/manager|trpc|artifacts|upload)(\/|\?|$)/.test(url)) return undefined
  // Somebody who sends a token, even an empty one, wants to be known by that.
  if (/^bearer\b/i.test(headers.authorization ?? '')) return undefined
  return { method, headers, rawHeaders, peerAddress: socket.remoteAddress ?? '' }
}

/** Deepest nesting of a JSON body: what comes after may recurse. Security: 2.5. */
const MAX_JSON_DEPTH = 64

/** The most values of a JSON body: parsing and validating that many costs at most about 100 ms. */
export const MAX_JSON_VALUES = 50_000

const EMPTY = Buffer.alloc(0)

export interface BodyLimits {
  readonly maxBytes: number
  /** The whole body must have arrived after that long. */
  readonly totalMs: number
  /** The longest silence while it arrives. */
  readonly idleMs: number
}

/**
 * Reads a whole body into memory.
 * @throws ServiceError `too_large`, `request_timeout`, `unsupported_media_type` (a compressed body).
 */
export function readBody(
  request: IncomingMessage,
  limits: BodyLimits,
  clock: Pick<Clock, 'monotonic'>,
): Promise<Buffer> {
  const encoding = request.headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() !== 'identity') {
    return Promise.reject(
      new ServiceError('unsupported_media_type', `Content-Encoding '${encoding}' is not supported here.`),
    )
  }
  if (Number(request.headers['content-length'] ?? 0) > limits.maxBytes)
    return Promise.reject(tooLarge(limits))
  // Most bodies come with their head, and are here by the time the caller is known: those need no clock.
  if (request.complete) return Promise.resolve((request.read() as Buffer | null) ?? EMPTY)
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let receivedBytes = 0
    const deadlineMs = clock.monotonic() + limits.totalMs
    const idle = setTimeout(() => fail(tooSlow()), limits.idleMs)
    function fail(error: ServiceError): void {
      clearTimeout(idle)
      request.off('data', onData).off('end', onEnd)
      reject(error)
    }
    // A client that leaves halfway is an error to Node, but no fault of ours.
    function onClose(): void {
      if (!request.complete) fail(new ServiceError('invalid_value', 'The request body ended early.'))
    }
    function onData(chunk: Buffer): void {
      idle.refresh()
      receivedBytes += chunk.length
      if (receivedBytes > limits.maxBytes) fail(tooLarge(limits))
      else if (clock.monotonic() > deadlineMs) fail(tooSlow())
      else chunks.push(chunk)
    }
    function onEnd(): void {
      clearTimeout(idle)
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))
    }
    request.on('data', onData).on('end', onEnd).on('error', onClose).on('close', onClose)
  })
}

/** The media type of a body without its parameters, in lower case. */
export function mediaTypeOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

/** Whether a request says that nothing follows its head. */
export function hasNoBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
}

/**
 * Parses a JSON body.
 * @throws ServiceError `invalid_value` for anything but well-formed JSON in UTF-8 of moderate depth and with at most `mostValues`
 * values.
 */
export function parseJson(bytes: Buffer, mostValues = MAX_JSON_VALUES): unknown {
  assertUtf8(bytes)
  assertOutline(bytes, mostValues)
  const text = bytes.toString('utf8')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new ServiceError('invalid_value', `The body is not valid JSON: ${(error as SyntaxError).message}`, {
      code: 'invalid_json',
    })
  }
  // An own key of this name would become the prototype of whatever copies the object; it can be spelled with escapes.
  if ((text.includes('__proto__') || text.includes('\\u00')) && hasOwnProto(value))
    throw new ServiceError('invalid_value', "The key '__proto__' is not allowed.")
  return value
}

/** @throws ServiceError `invalid_value` when the bytes are not UTF-8. */
export function decodeUtf8(bytes: Buffer): string {
  assertUtf8(bytes)
  return bytes.toString('utf8')
}

function assertUtf8(bytes: Buffer): void {
  if (!isUtf8(bytes)) throw new ServiceError('invalid_value', 'The body is not valid UTF-8.')
}

/** @throws ServiceError `invalid_value` before anything parses JSON that is too deep or holds too many values. */
function assertOutline(bytes: Buffer, mostValues: number): void {
  // A body with few brackets is not deep, and a short body does not hold many values.
  if (bytes.length <= mostValues && !hasManyBrackets(bytes)) return
  const { depth, values } = outlineOf(bytes, mostValues)
  if (depth > MAX_JSON_DEPTH)
    throw new ServiceError('invalid_value', `The JSON is nested deeper than ${MAX_JSON_DEPTH}.`)
  if (values > mostValues)
    throw new ServiceError('invalid_value', `The JSON holds more than ${mostValues} values.`)
}

/** Searching a short body for brackets is much cheaper than walking it. */
function hasManyBrackets(bytes: Buffer): boolean {
  let openers = 0
  for (const opener of ['{', '[']) {
    for (let at = bytes.indexOf(opener); at !== -1; at = bytes.indexOf(opener, at + 1)) {
      openers += 1
      if (openers > MAX_JSON_DEPTH) return true
    }
  }
  return false
}

function hasOwnProto(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasOwnProto)
}

function tooLarge({ maxBytes }: BodyLimits): ServiceError {
  return new ServiceError('too_large', `The request body is larger than the limit of ${maxBytes} bytes.`)
}

function tooSlow(): ServiceError {
  return new ServiceError('request_timeout', 'The request body did not arrive in time.')
}
