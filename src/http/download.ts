/**
 * Sends uploaded and generated files with headers that stop browsers from running them as pages of this
 * service.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { create as createDisposition } from 'content-disposition'
import { countingExternalBytes } from '../lib/external-memory.ts'
import { type ByteRange, choosePortion, type Portion } from './ranges.ts'
import { noStore, STALL_MS, securityHeaders } from './response.ts'

/** Media types that browsers may display inline; all others are downloaded. */
const inlineTypes: readonly string[] = [
  'video/mp4',
  'video/webm',
  'image/png',
  'image/jpeg',
  'image/webp',
  'text/vtt',
]

const sandboxHeaders: readonly string[] = securityHeaders.with(
  securityHeaders.indexOf('Content-Security-Policy') + 1,
  "default-src 'none'; sandbox; frame-ancestors 'none'",
)

interface DownloadCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly context: { setHeader(name: string, value: string): void }
  readonly signal: AbortSignal
  writeHead(status: number, headers: readonly string[], security: readonly string[]): void
}

export async function writeDownload(content: DownloadContent, call: DownloadCall): Promise<void> {
  const { request, response, context, signal } = call
  const portion = choosePortionOfRequest(request, content, context)
  const headers = listHeaders(content, portion)
  if (portion.status === 304 || request.method === 'HEAD') {
    call.writeHead(portion.status, headers, sandboxHeaders)
    response.end()
    return
  }
  // Opens the content before sending the headers, so that a failure can still set the status.
  const bytes = await content.open(portion.status === 206 ? portion : undefined)
  call.writeHead(portion.status, headers, sandboxHeaders)
  response.setTimeout(STALL_MS, () => response.destroy())
  try {
    await pipeline(bytes, countingExternalBytes, response, { signal })
  } catch (error) {
    throw isDisconnect(error) && signal.aborted ? signal.reason : error
  }
}

/** Sends a file of unknown size. A failure after the first piece closes the connection. */
export async function writeGenerated(content: GeneratedContent, call: DownloadCall): Promise<void> {
  const { response, signal } = call
  const pieces = content.pieces[Symbol.asyncIterator]()
  // Reads the first piece before sending the headers, so that a failure can still set the status.
  const first = await pieces.next()
  const disposition = createDisposition(toSafeName(content.filename), { type: 'attachment' })
  const headers = ['Content-Type', content.mediaType, 'Content-Disposition', disposition]
  call.writeHead(200, [...headers, ...noStore], sandboxHeaders)
  response.setTimeout(STALL_MS, () => response.destroy())
  async function* all() {
    if (first.done !== true) yield first.value
    yield* { [Symbol.asyncIterator]: () => pieces }
  }
  try {
    // Reads no pieces ahead, because a piece can be several megabytes long.
    await pipeline(Readable.from(all(), { highWaterMark: 1 }), response, { signal })
  } catch (error) {
    throw isDisconnect(error) && signal.aborted ? signal.reason : error
  }
}

export interface GeneratedContent {
  readonly mediaType: string
  readonly filename: string
  readonly pieces: AsyncIterable<string>
}

function isDisconnect(error: unknown): boolean {
  const codes: readonly unknown[] = ['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED', 'ABORT_ERR']
  return error instanceof Error && 'code' in error && codes.includes(error.code)
}

/** Adds `Content-Range` to a 416 response (RFC 9110, section 15.5.17). */
function choosePortionOfRequest(
  { method = '', headers }: IncomingMessage,
  content: DownloadContent,
  context: DownloadCall['context'],
): Portion {
  try {
    return choosePortion(method, headers, content)
  } catch (failure) {
    context.setHeader('Content-Range', `bytes */${content.sizeBytes}`)
    throw failure
  }
}

function listHeaders(content: DownloadContent, portion: Portion): string[] {
  const { sizeBytes, entityTag, mediaType } = content
  const headers = ['ETag', entityTag, 'Cache-Control', 'private, no-cache', 'Accept-Ranges', 'bytes']
  if (portion.status === 304) return headers
  headers.push('Content-Type', mediaType, 'Content-Disposition', dispositionOf(content))
  if (portion.status !== 206) return [...headers, 'Content-Length', String(sizeBytes)]
  const { start, end } = portion
  const contentRange = `bytes ${start}-${end}/${sizeBytes}`
  return [...headers, 'Content-Length', String(end - start + 1), 'Content-Range', contentRange]
}

/** Renders `Content-Disposition` (RFC 6266), with an ASCII fallback for a non-ASCII name. */
function dispositionOf({ mediaType, filename, isAttachment }: DownloadContent): string {
  const type = inlineTypes.includes(mediaType) && !isAttachment ? 'inline' : 'attachment'
  return createDisposition(toSafeName(filename), { type })
}

/**
 * Removes folders, control characters and bidirectional formatting characters from a file name. Never returns
 * an empty name, `.` or `..`.
 */
export function toSafeName(filename: string): string {
  const name = filename
    .toWellFormed()
    .replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, '')
    .replace(/^.*[/\\]/, '')
    .trim()
  return /^\.*$/.test(name) ? 'file' : name
}

export interface DownloadContent {
  readonly sizeBytes: number
  /** A strong entity tag, including the quotes. */
  readonly entityTag: string
  /** Detected from the content, not declared by the client. */
  readonly mediaType: string
  /** As the client sent it, not sanitized. */
  readonly filename: string
  readonly isAttachment?: boolean
  open(range?: ByteRange): Promise<Readable>
}
