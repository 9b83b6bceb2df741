/** Sends bytes that somebody uploaded, so that no browser runs them as a page of ours. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { create as createDisposition } from 'content-disposition'
import { countingExternalBytes } from '../lib/external-memory.ts'
import { type ByteRange, choosePortion, type Portion } from './ranges.ts'
import { STALL_MS, securityHeaders } from './response.ts'

/** What a browser may show; everything else is only ever saved. Security: 2.7. */
const inlineTypes: readonly string[] = [
  'video/mp4',
  'video/webm',
  'image/png',
  'image/jpeg',
  'image/webp',
  'text/vtt',
]

/** As for every answer, but a page made of these bytes is sandboxed on top. Security: 2.7. */
const userBytesHeaders: readonly string[] = securityHeaders.with(
  securityHeaders.indexOf('Content-Security-Policy') + 1,
  "default-src 'none'; sandbox; frame-ancestors 'none'",
)

/** What collects the headers of an answer. */
interface Headed {
  setHeader(name: string, value: string): void
}

/** One download on its way out. */
export interface DownloadWriting {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly context: Headed
  /** Aborted when the caller leaves or the service does. */
  readonly signal: AbortSignal
  /** Sends the status line with these headers in the place of the usual security headers. */
  writeHead(status: number, headers: readonly string[], security: readonly string[]): void
}

/**
 * Sends the bytes, or the part of them that was asked for.
 * @throws ServiceError `range_not_satisfiable`; whatever the bytes cannot be read for; the signal's reason.
 */
export async function writeDownload(content: DownloadContent, writing: DownloadWriting): Promise<void> {
  const { request, response, context, signal } = writing
  const portion = choosePortionOrTell(request, content, context)
  const headers = listHeaders(content, portion)
  if (portion.status === 304 || request.method === 'HEAD') {
    writing.writeHead(portion.status, headers, userBytesHeaders)
    response.end()
    return
  }
  // Before the head, so that a failure keeps its status.
  const bytes = await content.open(portion.status === 206 ? portion : undefined)
  writing.writeHead(portion.status, headers, userBytesHeaders)
  response.setTimeout(STALL_MS, () => response.destroy())
  try {
    await pipeline(bytes, countingExternalBytes, response, { signal })
  } catch (error) {
    throw isLeaving(error) && signal.aborted ? signal.reason : error
  }
}

function isLeaving(error: unknown): boolean {
  const codes: readonly unknown[] = ['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED', 'ABORT_ERR']
  return error instanceof Error && 'code' in error && codes.includes(error.code)
}

/** "A server generating a 416 response to a byte-range request SHOULD send a Content-Range header field". */
function choosePortionOrTell(
  { method = '', headers }: IncomingMessage,
  content: DownloadContent,
  context: Headed,
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

/** Protocol: RFC 6266, with the name in both its forms where it is not plain. */
function dispositionOf({ mediaType, filename, isAttachment }: DownloadContent): string {
  const type = inlineTypes.includes(mediaType) && !isAttachment ? 'inline' : 'attachment'
  return createDisposition(toSafeName(filename), { type })
}

/**
 * A name one can save a file under: without folders, without what turns text around or breaks its line, never empty and never
 * a folder itself. Security: R10.
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
  /** Changes whenever the bytes do; a strong tag, with its quotes. */
  readonly entityTag: string
  /** What the bytes were found to be, not what somebody said they are. */
  readonly mediaType: string
  /** What to save them as, unchecked. */
  readonly filename: string
  /** Never shown in the browser's own window, however harmless they look. */
  readonly isAttachment?: boolean
  /** The bytes in the range; all of them without one. */
  open(range?: ByteRange): Promise<Readable>
}
