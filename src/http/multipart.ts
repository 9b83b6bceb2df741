/** Receives a multipart form (RFC 7578) and streams its file to storage. */

import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { Dicer } from '@fastify/busboy'
import { ServiceError } from '../lib/errors.ts'
import {
  badPart,
  type FilePart,
  feed,
  notAForm,
  type SizeLimit,
  Storing,
  toFields,
  type UploadOptions,
} from './form-body.ts'
import { mediaTypeOf } from './request.ts'

const FILE_PART = 'file'
const MAX_FIELDS = 8
const MAX_FIELD_BYTES = 4_096
const MAX_HEADER_BYTES = 8_192
const MAX_HEADERS = 16
const MAX_BOUNDARY_LENGTH = 250
const MAX_OVERHEAD_BYTES = (MAX_FIELDS + 1) * (MAX_FIELD_BYTES + MAX_HEADER_BYTES)

/**
 * Receives a form that `assertAcceptable` has accepted. Call `discard` after use; it deletes the file unless it
 * was committed.
 */
export async function receiveUpload(request: IncomingMessage, options: UploadOptions) {
  const parser = await createParser(request)
  const { file, entries } = await readParts(request, parser, options)
  const discard = async () => file?.blob.abort()
  try {
    return { fields: toFields(entries, file === undefined ? [] : [[FILE_PART, file]]), discard }
  } catch (failure) {
    await discard()
    throw failure
  }
}

export function assertAcceptable(request: IncomingMessage, limit: SizeLimit): void {
  const { 'content-encoding': encoding = 'identity', 'content-length': length = '0' } = request.headers
  if (mediaTypeOf(request) !== 'multipart/form-data') {
    throw new ServiceError('unsupported_media_type', 'Content-Type: must be multipart/form-data')
  }
  if (encoding.toLowerCase() !== 'identity')
    throw new ServiceError('unsupported_media_type', `Content-Encoding: '${encoding}' is not supported`)
  if (Number(length) > limit.maxBytes + MAX_OVERHEAD_BYTES) throw limit.refuse()
}

async function createParser(request: IncomingMessage): Promise<Dicer> {
  const boundary = parseHeaderValue(request.headers['content-type'] ?? '').parameters.get('boundary') ?? ''
  if (boundary === '' || boundary.length > MAX_BOUNDARY_LENGTH)
    throw new ServiceError('invalid_value', 'Content-Type must contain a valid boundary')
  // Loaded on the first upload to keep server startup fast.
  const { Dicer } = await import('@fastify/busboy')
  const config = { boundary, maxHeaderPairs: MAX_HEADERS, maxHeaderSize: MAX_HEADER_BYTES }
  return new Dicer(config)
}

async function readParts(
  request: IncomingMessage,
  parser: Dicer,
  options: UploadOptions,
): Promise<{ file: FilePart | undefined; entries: [string, string][] }> {
  const stopping = new AbortController()
  const storing = new Storing({ ...options, signal: stopping.signal })
  const parts = new FormParts(request, storing, stopping)
  parser.on('part', (part) => parts.add(part))
  try {
    const signal = AbortSignal.any([options.signal, stopping.signal])
    const maxBodyBytes = options.limit.maxBytes + MAX_OVERHEAD_BYTES
    await feed(request, parser, storing, { ...options, maxBodyBytes, signal })
    if (parts.headlessCount > 0) throw notAForm()
    return { file: await storing.file, entries: parts.entries }
  } catch (failure) {
    stopping.abort(failure)
    const file = await storing.file.catch(() => undefined)
    await file?.blob.abort()
    throw failure
  }
}

class FormParts {
  readonly entries: [string, string][] = []
  private readonly request: IncomingMessage
  private readonly storing: Storing
  private readonly stopping: AbortController
  /** The number of parts whose headers are still incomplete. */
  headlessCount = 0
  private partCount = 0
  private fieldCount = 0
  private file: Readable | undefined

  constructor(request: IncomingMessage, storing: Storing, stopping: AbortController) {
    this.request = request
    this.storing = storing
    this.stopping = stopping
  }

  add(part: Readable): void {
    // Without a listener, an error in a part that is no longer needed would crash the process.
    part.on('error', () => {
      // The storage code reports errors in the file part.
      if (part !== this.file) this.stop(notAForm())
    })
    this.partCount += 1
    if (this.partCount > MAX_FIELDS + 1) this.stop(tooManyFields())
    // The parser continues only after every part in the chunk has been read, even one whose headers are
    // incomplete.
    part.resume()
    this.headlessCount += 1
    part.once('header', (header: PartHeader) => {
      this.headlessCount -= 1
      this.open(part, header)
    })
  }

  private open(part: Readable, header: PartHeader): void {
    // The parser emits the rest of its chunk even after the form was rejected.
    if (this.stopping.signal.aborted) return
    try {
      const head = readPartHead(header)
      if (head === undefined) return
      if (head.name === FILE_PART) this.openFile(part, head)
      else this.openField(part, head)
    } catch (failure) {
      this.stop(failure)
    }
  }

  private openFile(part: Readable, { filename }: PartHead): void {
    if (this.file !== undefined) throw badPart('must be sent only once', FILE_PART)
    this.file = part.pause()
    this.storing.start(part, filename, this.request).catch((failure) => this.stop(failure))
  }

  private openField(part: Readable, { name, charset }: PartHead): void {
    this.fieldCount += 1
    if (this.fieldCount > MAX_FIELDS) throw tooManyFields()
    const chunks: Uint8Array[] = []
    let sizeBytes = 0
    part.on('data', (chunk: Uint8Array) => {
      sizeBytes += chunk.length
      if (sizeBytes <= MAX_FIELD_BYTES) chunks.push(chunk)
      else this.stop(badPart(`must be at most ${MAX_FIELD_BYTES} bytes`, name))
    })
    part.once('end', () => {
      try {
        this.entries.push([name, decodeStrictly(Buffer.concat(chunks), charset)])
      } catch {
        this.stop(badPart(`is not valid text in the charset ${charset}`, name))
      }
    })
  }

  /** Aborts the form with the failure; later failures are ignored. */
  private stop(failure: unknown): void {
    this.stopping.abort(failure)
  }
}

function tooManyFields(): ServiceError {
  return badPart(`The form has more than ${MAX_FIELDS} fields.`)
}

/** Header values, keyed by lower-case name and decoded as Latin-1. */
type PartHeader = Readonly<Record<string, readonly string[] | undefined>>

interface PartHead {
  readonly name: string
  readonly filename: string | undefined
  readonly charset: string
}

function readPartHead(header: PartHeader): PartHead | undefined {
  const { type, parameters } = parseHeaderValue(header['content-disposition']?.[0] ?? '')
  if (type !== 'form-data') return undefined
  const name = readText(parameters, 'name', () =>
    badPart('A field name in the form is not valid text; encode field names in UTF-8.'),
  )
  const filename = readText(parameters, 'filename', () =>
    badPart('the file name is not valid text; encode it in UTF-8', name || undefined),
  )
  const contentType = parseHeaderValue(header['content-type']?.[0] ?? '')
  return { name: name ?? '', filename, charset: contentType.parameters.get('charset') ?? 'utf-8' }
}

/**
 * Parses `type; name=value; name="value"`. Accepts unquoted spaces and a missing closing quote, as some
 * clients send them.
 */
function parseHeaderValue(text: string) {
  const parameters = new Map<string, string>()
  const [type = ''] = text.split(';', 1)
  for (const [, name = '', value = ''] of text
    .slice(type.length)
    .matchAll(/;\s*([^\s;="]+)\s*=((?:"(?:[^"\\]|\\.)*"?|[^";])*)/gs)) {
    if (!parameters.has(name.toLowerCase())) parameters.set(name.toLowerCase(), unquote(value.trim()))
  }
  return { type: type.trim().toLowerCase(), parameters }
}

function decodeStrictly(bytes: Uint8Array, charset: string): string {
  return new TextDecoder(charset, { fatal: true, ignoreBOM: true }).decode(bytes)
}

/**
 * A backslash escapes only a quote or another backslash, because some browsers send paths with single
 * backslashes.
 */
function unquote(value: string): string {
  return value.replace(/"((?:[^"\\]|\\.)*)"?/gs, (_all, inner: string) => inner.replace(/\\(["\\])/g, '$1'))
}

/** Reads a parameter as text; the extended form (`name*=UTF-8''...`) takes precedence. */
function readText(
  parameters: ReadonlyMap<string, string>,
  name: string,
  refuse: () => ServiceError,
): string | undefined {
  const extended = parameters.get(`${name}*`)
  const plain = parameters.get(name)
  if (extended === undefined && plain === undefined) return undefined
  const text = extended === undefined ? decodePlain(plain ?? '') : decodeExtended(extended)
  if (text === undefined || /[\r\n]/.test(text)) throw refuse()
  return text
}

function decodePlain(value: string): string | undefined {
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined
}

function decodeExtended(value: string): string | undefined {
  const [, charset = 'utf-8', encoded = ''] = /^([^']*)'[^']*'(.*)$/s.exec(value) ?? [value, undefined, value]
  const binary = encoded.replace(/%([0-9a-f]{2})/gi, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  try {
    return decodeStrictly(Buffer.from(binary, 'latin1'), charset)
  } catch {
    return undefined
  }
}
