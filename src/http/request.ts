/** Reads and validates a request's id, address, credentials and body. */
import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import ipaddr from 'ipaddr.js'
import type { Clock } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { isSurelyWithin, type JsonOutline, outlineOf } from '../lib/formats/json.ts'
import { type AddressBlock, isWithin, withoutZone } from '../lib/net.ts'

/** Credentials other than a key: a session cookie or a proxy's headers. */
export interface ImplicitCredentials {
  readonly method: string
  /** The socket's remote address, never one from a header. */
  readonly peerAddress: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
}

/** Converts an absolute request target to a path, and sets `Host` from it (RFC 9112, section 3.2.2). */
export function toOriginForm(request: IncomingMessage): void {
  if (request.url?.startsWith('/')) return
  const [, authority, target] = /^[a-z][\w+.-]*:\/\/([^/?#]*)(.*)$/i.exec(request.url ?? '') ?? []
  if (authority === undefined) return
  request.headers.host = authority
  request.url = target?.startsWith('/') ? target : `/${target}`
}

export function requestIdOf(request: IncomingMessage): string {
  const sent = request.headers['x-request-id']
  return typeof sent === 'string' && /^[\w.:-]{1,128}$/.test(sent) ? sent : randomUUID()
}

/** Returns the bearer token from `Authorization`, the only place where the server accepts keys. */
export function bearerOf(request: IncomingMessage): string | undefined {
  const header = request.headers.authorization
  if (header === undefined || !/^bearer /i.test(header)) return undefined
  return header.slice(7).trim()
}

/**
 * @throws ServiceError `invalid_value` for a repeated header, because a proxy might use a different copy than
 * this server.
 */
export function assertSingleHeaders({ rawHeaders }: IncomingMessage): void {
  for (const name of singleHeaders) {
    let count = 0
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const sent = rawHeaders[at] as string
      if (sent.length === name.length && sent.toLowerCase() === name.toLowerCase()) count += 1
    }
    if (count > 1) throw new ServiceError('invalid_value', `${name} must be sent only once.`, { param: name })
  }
}

const singleHeaders = ['Authorization', 'Host'] as const

/**
 * Returns the `token` query parameter of an artifact's URL, for clients that cannot set headers, such as
 * `<video>`.
 */
export function tokenOf({ method, url = '' }: IncomingMessage): string | undefined {
  if (method !== 'GET' && method !== 'HEAD') return undefined
  if (!/^\/artifacts\/[^?]*\?/.test(url)) return undefined
  return new URLSearchParams(url.slice(url.indexOf('?'))).get('token') ?? undefined
}

/**
 * Returns the peer's address or, if the peer is a trusted proxy, the last untrusted address in
 * `X-Forwarded-For`.
 */
export function clientAddressOf(request: IncomingMessage, trusted: readonly AddressBlock[]): string {
  let client = plainAddress(request.socket.remoteAddress ?? '')
  if (trusted.length === 0) return client
  const forwarded = String(request.headers['x-forwarded-for'] ?? '').split(',')
  while (isWithin(client, trusted)) {
    const seen = withoutZone(forwarded.pop()?.trim() ?? '')
    if (!ipaddr.isValid(seen)) break
    client = ipaddr.process(seen).toString()
  }
  return client
}

/**
 * Returns the last address in `X-Forwarded-For` if the header is ignored because the peer is not a trusted
 * proxy.
 */
export function ignoredForwardedForOf(
  { headers, socket }: IncomingMessage,
  trusted: readonly AddressBlock[],
): string | undefined {
  const forwarded = headers['x-forwarded-for']
  if (forwarded === undefined || isWithin(plainAddress(socket.remoteAddress ?? ''), trusted)) return undefined
  return String(forwarded).split(',').at(-1)?.trim()
}

function plainAddress(address: string): string {
  const plain = withoutZone(address)
  return plain.startsWith('::ffff:') ? plain.slice(7) : plain
}

/** Sends `100 Continue` to a client that waits for it; call this only after authentication. */
export function askForBody({ headers, httpVersion }: IncomingMessage, response: ServerResponse): void {
  if (headers.expect?.toLowerCase() === '100-continue' && httpVersion === '1.1') response.writeContinue()
}

/** Returns a request's implicit credentials, or undefined on paths that accept only keys. */
export function implicitCredentialsOf(request: IncomingMessage): ImplicitCredentials | undefined {
  const { method = '', url = '', headers, rawHeaders, socket } = request
  if (!/^\/(v1\/manager|trpc|artifacts|upload)(\/|\?|$)/.test(url)) return undefined
  // A client that sends a bearer token, even an empty one, does not authenticate implicitly.
  if (/^bearer\b/i.test(headers.authorization ?? '')) return undefined
  return { method, headers, rawHeaders, peerAddress: socket.remoteAddress ?? '' }
}

const MAX_TARGET_LENGTH = 8_192

export function assertShortTarget({ url = '' }: IncomingMessage): void {
  if (url.length > MAX_TARGET_LENGTH)
    throw new ServiceError('too_large', `The URL is longer than ${MAX_TARGET_LENGTH} characters.`)
}

/** Maximum nesting depth of a JSON body; limits recursion in code that processes it. */
const MAX_JSON_DEPTH = 64

/** Maximum number of values in a JSON body; parsing and validating this many takes about 100 ms. */
export const MAX_JSON_VALUES = 50_000

const EMPTY = Buffer.alloc(0)

const FREE_CHUNKS = 5_000
/**
 * Minimum average chunk size. Even a slow connection delivers its bytes in network packets, which are far
 * larger.
 */
const MIN_AVERAGE_BYTES = 128

/** Recognizes bodies in tiny chunks, which cost far more CPU and memory than their bytes. */
export class ChunkCounter {
  bytes = 0
  private chunks = 0

  add(chunk: Uint8Array): void {
    this.bytes += chunk.length
    this.chunks += 1
  }

  get isTooFine(): boolean {
    return this.chunks > FREE_CHUNKS + this.bytes / MIN_AVERAGE_BYTES
  }
}

export function tooFine(): ServiceError {
  return new ServiceError(
    'invalid_value',
    `The body is sent in chunks that are too small; send at least ${MIN_AVERAGE_BYTES} bytes in each.`,
  )
}

interface BodyLimits {
  readonly maxBytes: number
  readonly totalMs: number
  readonly idleMs: number
}

export async function readBody(
  request: IncomingMessage,
  limits: BodyLimits,
  clock: Pick<Clock, 'monotonic'>,
): Promise<Buffer> {
  const { 'content-encoding': encoding = 'identity', 'content-length': length } = request.headers
  if (encoding.toLowerCase() !== 'identity')
    throw new ServiceError('unsupported_media_type', `Content-Encoding: '${encoding}' is not supported`)
  if (length !== undefined && Number(length) > limits.maxBytes) throw tooLarge(limits)
  // Waits until Node has parsed a body that arrived with the headers. Such a body needs no timers or
  // listeners.
  await undefined
  if (length !== undefined && request.readableLength === Number(length)) return takeBody(request)
  return receiveBody(request, limits, clock)
}

function takeBody(request: IncomingMessage): Buffer {
  const bytes = (request.read() as Buffer | null) ?? EMPTY
  // Node would set this shortly afterwards.
  request.complete = true
  return bytes
}

function receiveBody(
  request: IncomingMessage,
  limits: BodyLimits,
  clock: Pick<Clock, 'monotonic'>,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const counter = new ChunkCounter()
    const deadlineMs = clock.monotonic() + limits.totalMs
    const idle = setTimeout(() => fail(tooSlow()), limits.idleMs)
    function fail(error: ServiceError): void {
      clearTimeout(idle)
      request.off('data', onData).off('end', onEnd)
      reject(error)
    }
    // Also handles `error`, which Node emits when a client disconnects early.
    function onClose(): void {
      if (!request.complete) fail(new ServiceError('invalid_value', 'The request body ended early.'))
    }
    function onData(chunk: Buffer): void {
      idle.refresh()
      counter.add(chunk)
      if (counter.bytes > limits.maxBytes) fail(tooLarge(limits))
      else if (counter.isTooFine) fail(tooFine())
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

export function mediaTypeOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

export function hasNoBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
}

/**
 * Parses a JSON body. `outline` is the body's outline if the caller has already computed it.
 * @throws ServiceError `invalid_value` for invalid UTF-8 or JSON, and for JSON that exceeds the limits.
 */
export function parseJson(bytes: Buffer, mostValues = MAX_JSON_VALUES, outline?: JsonOutline): unknown {
  assertUtf8(bytes)
  const text = bytes.toString('utf8')
  if (outline !== undefined || !isSurelyWithin(text, MAX_JSON_DEPTH, mostValues))
    assertOutline(outline ?? outlineOf(bytes, mostValues), mostValues)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new ServiceError('invalid_value', `The body is not valid JSON: ${(error as SyntaxError).message}`, {
      code: 'invalid_json',
    })
  }
  // An object with this key must not be copied, because the copy would get a different prototype. In JSON,
  // the key may contain escapes.
  if ((text.includes('__proto__') || text.includes('\\u00')) && hasOwnProto(value))
    throw new ServiceError('invalid_value', "The key '__proto__' is not allowed.")
  return value
}

export function decodeUtf8(bytes: Buffer): string {
  assertUtf8(bytes)
  return bytes.toString('utf8')
}

function assertUtf8(bytes: Buffer): void {
  if (!isUtf8(bytes)) throw new ServiceError('invalid_value', 'The body is not valid UTF-8.')
}

function assertOutline({ depth, values }: JsonOutline, mostValues: number): void {
  if (depth > MAX_JSON_DEPTH)
    throw new ServiceError('invalid_value', `The JSON body is nested deeper than ${MAX_JSON_DEPTH} levels.`)
  if (values > mostValues)
    throw new ServiceError('invalid_value', `The JSON body contains more than ${mostValues} values.`)
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
