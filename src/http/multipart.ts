/** Receives a form with a file: the file is streamed to storage; the other fields are few and short. */
import type { IncomingMessage } from 'node:http'
import type { BusboyInstance } from '@fastify/busboy'
import { ServiceError } from '../lib/errors.ts'
import {
  badPart,
  type FilePart,
  type FileSink,
  feed,
  type SizeLimit,
  Storing,
  toFields,
} from './form-body.ts'
import { mediaTypeOf } from './request.ts'

const FILE_PART = 'file'
/** The limits of the other fields. */
const MAX_FIELDS = 8
const MAX_FIELD_BYTES = 4_096
const MAX_HEADER_BYTES = 8_192
const MAX_HEADERS = 16
/** The maximum size of everything but the file. */
const MAX_BYTES_BESIDE = (MAX_FIELDS + 1) * (MAX_FIELD_BYTES + MAX_HEADER_BYTES)

export interface UploadOptions {
  readonly files: FileSink
  readonly limit: SizeLimit
  /** The timeout between two chunks; the whole form has none. */
  readonly idleMs: number
  /** Aborted when the client disconnects or the service shuts down. */
  readonly signal: AbortSignal
}

/** A received form. */
export interface ReceivedUpload {
  /** The fields by name, the file among them. */
  readonly fields: Record<string, unknown>
  /** Deletes the file unless it was committed. */
  discard(): Promise<void>
}

/**
 * Receives a form that `assertAcceptable` accepts; the caller discards it after use.
 * @throws ServiceError `invalid_value`, `too_large`, `request_timeout`, `storage_full`, or the signal's reason.
 */
export async function receiveUpload(
  request: IncomingMessage,
  options: UploadOptions,
): Promise<ReceivedUpload> {
  const parser = await createParser(request, options)
  const { file, entries } = await readParts(request, parser, options)
  const discard = async () => file?.blob.discard()
  try {
    return { fields: toFields(entries, file === undefined ? [] : [[FILE_PART, file]]), discard }
  } catch (failure) {
    await discard()
    throw failure
  }
}

/**
 * Rejects a form by its head.
 * @throws ServiceError `unsupported_media_type`, `too_large`
 */
export function assertAcceptable(request: IncomingMessage, limit: SizeLimit): void {
  const { 'content-encoding': encoding = 'identity', 'content-length': length = '0' } = request.headers
  if (mediaTypeOf(request) !== 'multipart/form-data') {
    throw new ServiceError('unsupported_media_type', 'A file is sent as multipart/form-data.')
  }
  if (encoding.toLowerCase() !== 'identity')
    throw new ServiceError('unsupported_media_type', `Content-Encoding '${encoding}' is not supported here.`)
  if (Number(length) > limit.maxBytes + MAX_BYTES_BESIDE) throw limit.refuse()
}

async function createParser(request: IncomingMessage, { limit }: UploadOptions): Promise<BusboyInstance> {
  // Loaded with the first upload, to start faster.
  const { Busboy } = await import('@fastify/busboy')
  try {
    return new Busboy({
      headers: { 'content-type': request.headers['content-type'] ?? '' },
      // Only the name decides, not the headers of the part.
      isPartAFile: (name) => name === FILE_PART,
      limits: {
        fileSize: limit.maxBytes,
        files: 1,
        fields: MAX_FIELDS,
        parts: MAX_FIELDS + 1,
        fieldSize: MAX_FIELD_BYTES,
        fieldNameSize: MAX_HEADER_BYTES,
        headerPairs: MAX_HEADERS,
        headerSize: MAX_HEADER_BYTES,
      },
    })
  } catch {
    throw new ServiceError('invalid_value', 'The Content-Type names no usable boundary.')
  }
}

/** The fields in order, and the staged file; a failure discards the file. */
async function readParts(
  request: IncomingMessage,
  parser: BusboyInstance,
  options: UploadOptions,
): Promise<{ file: FilePart | undefined; entries: [string, string][] }> {
  const entries: [string, string][] = []
  const stopping = new AbortController()
  const stop = (failure: unknown) => stopping.abort(failure)
  const storing = new Storing({ ...options, signal: stopping.signal })
  parser.on('file', (_name, bytes, filename) => {
    // What was in the parser's hands when something else failed.
    if (stopping.signal.aborted) return void bytes.resume()
    bytes.once('limit', () => stop(options.limit.refuse()))
    storing.start(bytes, filename, request).catch(stop)
  })
  parser.on('field', (name, value, _isNameCut, isCut) => {
    if (isCut) stop(badPart(`the field is longer than ${MAX_FIELD_BYTES} bytes`, name))
    else entries.push([name ?? '', value])
  })
  parser.once('filesLimit', () => stop(badPart('there is more than one', FILE_PART)))
  for (const event of ['fieldsLimit', 'partsLimit'])
    parser.once(event, () => stop(badPart(`The form has more than ${MAX_FIELDS} fields.`)))
  try {
    const signal = AbortSignal.any([options.signal, stopping.signal])
    const maxBodyBytes = options.limit.maxBytes + MAX_BYTES_BESIDE
    await feed(request, parser, storing, { ...options, maxBodyBytes, signal })
    return { file: await storing.file, entries }
  } catch (failure) {
    stop(failure)
    const file = await storing.file.catch(() => undefined)
    await file?.blob.discard()
    throw failure
  }
}
