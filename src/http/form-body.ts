/** Streams a multipart form's body through its parser into storage, and rejects forms that stall. */
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Dicer } from '@fastify/busboy'
import { ServiceError } from '../lib/errors.ts'
import { parseJson } from '../lib/formats/json.ts'
import { ChunkCounter, tooFine } from './request.ts'

/** A received file; `abort` has no effect after the file is committed. */
interface StagedFile {
  abort(): Promise<void>
}

export interface FileSink {
  stage(bytes: AsyncIterable<Uint8Array>, expectedBytes: number): Promise<StagedFile>
}

export interface FilePart {
  readonly blob: StagedFile
  readonly filename: string
}

export interface UploadOptions {
  readonly files: FileSink
  readonly limit: SizeLimit
  /** Maximum time between two chunks, in milliseconds; the whole form has no timeout. */
  readonly idleMs: number
  readonly signal: AbortSignal
}

type FeedOptions = Omit<UploadOptions, 'files'> & { readonly maxBodyBytes: number }

export class Storing {
  file: Promise<FilePart | undefined> = Promise.resolve(undefined)
  isPending = false
  isHungry = false
  onChange = () => {}
  private readonly options: UploadOptions

  constructor(options: UploadOptions) {
    this.options = options
  }

  start(bytes: Readable, filename: string | undefined, { headers }: IncomingMessage): Promise<unknown> {
    const { files, signal } = this.options
    this.isPending = true
    signal.addEventListener('abort', () => bytes.destroy(signal.reason))
    const staging = files.stage(this.limitBytes(bytes), Number(headers['content-length'] ?? 0))
    this.file = staging
      .then((blob) => ({ blob, filename: toFilename(filename) }))
      .finally(() => {
        this.isPending = false
        this.onChange()
      })
    return this.file
  }

  private async *limitBytes(bytes: Readable): AsyncIterable<Uint8Array> {
    const { limit } = this.options
    let sizeBytes = 0
    this.setHungry(true)
    for await (const chunk of bytes) {
      this.setHungry(false)
      sizeBytes += chunk.length
      if (sizeBytes > limit.maxBytes) throw limit.refuse()
      yield chunk
      this.setHungry(true)
    }
    this.setHungry(false)
  }

  private setHungry(isHungry: boolean): void {
    this.isHungry = isHungry
    this.onChange()
  }
}

/**
 * Feeds the parser one chunk at a time, and always destroys it without calling `end()`, because a late parser
 * error would have no listener and would crash the process.
 */
export function feed(
  request: IncomingMessage,
  parser: Dicer,
  storing: Storing,
  options: FeedOptions,
): Promise<void> {
  const { signal } = options
  return new Promise((resolve, reject) => {
    const stopWatching = watchBody(request, storing, options, fail)
    const onAbort = () => fail(signal.reason)
    let isParsed = false
    let isParsing = false
    let isSettled = false
    function fail(failure: unknown): void {
      settle()
      reject(failure)
    }
    function settle(): void {
      if (isSettled) return
      isSettled = true
      stopWatching()
      signal.removeEventListener('abort', onAbort)
      request.off('data', onData).resume()
      parser.destroy()
    }
    // A pipe would stop at the last boundary, but the rest of the body must be read as well.
    function onData(chunk: Buffer): void {
      // Discards bytes after the last boundary, or after another listener has settled the form.
      if (isSettled || isParsed) return
      isParsing = true
      request.pause()
      try {
        parser.write(chunk, onParsed)
      } catch {
        fail(notAForm())
      }
    }
    function onParsed(): void {
      if (isSettled) return
      isParsing = false
      request.resume()
      checkEnd()
    }
    // Waits one event-loop turn after the last chunk and then checks that every part is complete, because the
    // parser does not report an incomplete form.
    async function checkEnd(): Promise<void> {
      if (!request.readableEnded || isParsing) return
      await nextTurn()
      if (storing.isHungry || !(storing.isPending || isParsed)) fail(notAForm())
      else if (!storing.isPending) {
        settle()
        resolve()
      }
    }
    storing.onChange = checkEnd
    parser.on('error', () => fail(notAForm()))
    // The parser may not invoke the callback for the chunk that contains the last boundary.
    parser.once('finish', () => {
      isParsed = true
      onParsed()
    })
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort)
    request.on('data', onData).once('end', checkEnd)
  })
}

/** Rejects a body that is too large, incomplete or idle; the returned function stops the checks. */
function watchBody(
  request: IncomingMessage,
  storing: Storing,
  { idleMs, limit, maxBodyBytes }: FeedOptions,
  fail: (failure: ServiceError) => void,
): () => void {
  const counter = new ChunkCounter()
  const idle = setTimeout(() => {
    const isClientsTurn = !request.isPaused() && !request.readableEnded
    if (isClientsTurn) fail(new ServiceError('request_timeout', 'The request body did not arrive in time.'))
    else if (storing.isPending && !storing.isHungry) idle.refresh()
    else fail(notAForm())
  }, idleMs)
  function onData(chunk: Buffer): void {
    idle.refresh()
    counter.add(chunk)
    if (counter.bytes > maxBodyBytes) fail(limit.refuse())
    else if (counter.isTooFine) fail(tooFine())
  }
  function onClose(): void {
    if (!request.complete) fail(badPart('The request body ended early.'))
  }
  request.on('data', onData).on('close', onClose).on('error', onClose)
  // Leaves the error listener attached, because a late error without a listener would crash the process.
  return () => {
    clearTimeout(idle)
    request.off('data', onData).off('close', onClose)
  }
}

export function notAForm(): ServiceError {
  return badPart('The body is not a complete multipart form.')
}

export interface SizeLimit {
  readonly maxBytes: number
  refuse(): ServiceError
}

/**
 * Returns the form's fields, keyed by name, with `expires_after[seconds]` as a nested field; parses JSON
 * objects, except those in `whole`.
 */
export function toFields(
  entries: readonly [string, string][],
  whole: readonly [string, unknown][],
): Record<string, unknown> {
  const fields = new Map<string, unknown>(whole)
  for (const [name, value] of entries) {
    const [, outer, inner] = /^(\w+)\[(\w+)\]$/.exec(name) ?? []
    const parent = outer === undefined ? fields : (fields.get(outer) ?? new Map())
    if (!(parent instanceof Map) || parent.has(inner ?? name)) throw badPart('must be sent only once', name)
    parent.set(inner ?? name, value.startsWith('{') ? (parseJson(value) ?? value) : value)
    if (outer !== undefined) fields.set(outer, parent)
  }
  return toObject(fields)
}

function toObject(fields: Map<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    [...fields].map(([name, value]) => [name, value instanceof Map ? toObject(value) : value]),
  )
}

/**
 * Removes the path from a file name (RFC 7578, section 4.2) and decodes `%22`, but not escaped line breaks.
 */
function toFilename(sent: string | undefined): string {
  const name = sent?.replace(/^.*[/\\]/s, '').replaceAll('%22', '"') ?? ''
  return name === '' || name === '.' || name === '..' ? 'unnamed' : name
}

export function badPart(what: string, part?: string): ServiceError {
  if (part === undefined) return new ServiceError('invalid_value', what)
  return new ServiceError('invalid_value', `${part}: ${what}`, { param: part })
}
