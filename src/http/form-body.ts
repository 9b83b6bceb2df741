/** Feeds the body of a form through its parser into storage, and detects bodies that stall. */
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { BusboyInstance } from '@fastify/busboy'
import { ServiceError } from '../lib/errors.ts'

/** A received file; discarding it has no effect once it is committed. */
export interface StagedFile {
  discard(): Promise<void>
}

export interface FileSink {
  stage(bytes: AsyncIterable<Uint8Array>, expectedBytes: number): Promise<StagedFile>
}

/** A received file and the name that the client sent. */
export interface FilePart {
  readonly blob: StagedFile
  readonly filename: string
}

interface StoringOptions {
  readonly files: FileSink
  /** Aborted when any part of the form fails. */
  readonly signal: AbortSignal
}

interface FeedOptions {
  readonly signal: AbortSignal
  /** The timeout between two chunks. */
  readonly idleMs: number
  readonly limit: SizeLimit
  /** The maximum size of the whole body. */
  readonly maxBodyBytes: number
}

/** The one file of a form while it is stored. */
export class Storing {
  /** The file once it is stored; undefined while there is none. */
  file: Promise<FilePart | undefined> = Promise.resolve(undefined)
  isPending = false
  /** Whether storage waits for more bytes. */
  isHungry = false
  /** Called when either changes. */
  onChange = () => {}
  private readonly options: StoringOptions

  constructor(options: StoringOptions) {
    this.options = options
  }

  start(bytes: Readable, filename: string | undefined, { headers }: IncomingMessage): Promise<unknown> {
    const { files, signal } = this.options
    this.isPending = true
    // Also once nobody reads it any more: the parser still tells it of a form that breaks off.
    bytes.on('error', () => {})
    signal.addEventListener('abort', () => bytes.destroy(signal.reason))
    const staging = files.stage(this.watch(bytes), Number(headers['content-length'] ?? 0))
    this.file = staging
      .then((blob) => ({ blob, filename: toFilename(filename) }))
      .finally(() => {
        this.isPending = false
        this.onChange()
      })
    return this.file
  }

  private async *watch(bytes: Readable): AsyncIterable<Uint8Array> {
    this.setHungry(true)
    for await (const chunk of bytes) {
      this.setHungry(false)
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

/** Feeds the whole body to the parser; rejects at the first error and reads no further. */
export function feed(
  request: IncomingMessage,
  parser: BusboyInstance,
  storing: Storing,
  options: FeedOptions,
): Promise<void> {
  const { signal } = options
  return new Promise((resolve, reject) => {
    const stopWatching = watchBody(request, storing, options, fail)
    const onAbort = () => fail(signal.reason)
    let isParsed = false
    function fail(failure: unknown): void {
      settle()
      reject(failure)
    }
    function settle(): void {
      stopWatching()
      signal.removeEventListener('abort', onAbort)
      request.off('data', onData).resume()
    }
    // Not a pipe: that stops at the last boundary, where the parser is done, and the body may go on behind it.
    function onData(chunk: Buffer): void {
      if (!parser.write(chunk)) request.pause()
    }
    // The parser says nothing of some malformed parts. Once the body has ended it needs one turn for what it has in hand.
    async function look(): Promise<void> {
      if (!request.readableEnded) return
      await nextTurn()
      if (storing.isHungry || !(storing.isPending || isParsed)) fail(notAForm())
      else if (!storing.isPending) {
        settle()
        resolve()
      }
    }
    storing.onChange = look
    parser.on('drain', () => request.resume()).on('error', () => fail(notAForm()))
    parser.once('finish', () => {
      isParsed = true
    })
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort)
    request
      .on('data', onData)
      .once('end', () => parser.end())
      .once('end', look)
  })
}

/** Fails when the body is too large, idle, incomplete or stuck; the returned function stops the checks. */
function watchBody(
  request: IncomingMessage,
  storing: Storing,
  { idleMs, limit, maxBodyBytes }: FeedOptions,
  fail: (failure: ServiceError) => void,
): () => void {
  let receivedBytes = 0
  const idle = setTimeout(() => {
    const isClientsTurn = !request.isPaused() && !request.readableEnded
    if (isClientsTurn) fail(new ServiceError('request_timeout', 'The request body did not arrive in time.'))
    else if (storing.isPending && !storing.isHungry) idle.refresh()
    else fail(notAForm())
  }, idleMs)
  function onData(chunk: Buffer): void {
    idle.refresh()
    receivedBytes += chunk.length
    if (receivedBytes > maxBodyBytes) fail(limit.refuse())
  }
  function onClose(): void {
    if (!request.complete) fail(badPart('The request body ended early.'))
  }
  request.on('data', onData).on('close', onClose).on('error', onClose)
  // Errors are heard on: one that comes later is no reason to die.
  return () => {
    clearTimeout(idle)
    request.off('data', onData).off('close', onClose)
  }
}

function notAForm(): ServiceError {
  return badPart('The body is not a whole multipart form.')
}

export interface SizeLimit {
  readonly maxBytes: number
  /** The error for a larger file. */
  refuse(): ServiceError
}

/**
 * The fields by name: `expires_after[seconds]` is the field `seconds` of `expires_after`, and a JSON object is parsed; `whole` are
 * fields that are values already.
 * @throws ServiceError `invalid_value` when a field comes twice.
 */
export function toFields(
  entries: readonly [string, string][],
  whole: readonly [string, unknown][],
): Record<string, unknown> {
  const fields = new Map<string, unknown>(whole)
  for (const [name, value] of entries) {
    const [, outer, inner] = /^(\w+)\[(\w+)\]$/.exec(name) ?? []
    const parent = outer === undefined ? fields : (fields.get(outer) ?? new Map())
    if (!(parent instanceof Map) || parent.has(inner ?? name)) throw badPart('it is there twice', name)
    parent.set(inner ?? name, toValue(value))
    if (outer !== undefined) fields.set(outer, parent)
  }
  return toObject(fields)
}

function toObject(fields: Map<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    [...fields].map(([name, value]) => [name, value instanceof Map ? toObject(value) : value]),
  )
}

function toValue(text: string): unknown {
  if (!text.startsWith('{')) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/**
 * Decodes `%22`, which browsers and the official clients send for a quote. The parser has already removed the folders, as RFC 7578, 4.2
 * requires.
 */
export function toFilename(sent: string | undefined): string {
  return sent?.replaceAll('%22', '"') || 'unnamed'
}

/** The error for a malformed form, naming the part. */
export function badPart(what: string, part?: string): ServiceError {
  if (part === undefined) return new ServiceError('invalid_value', what)
  return new ServiceError('invalid_value', `${part}: ${what}`, { param: part })
}
