/** Parses the tus `Upload-Metadata` header, and builds the events for the host's handlers. */
import { isUtf8 } from 'node:buffer'
import type { Readable } from 'node:stream'
import { ServiceError } from '../lib/errors.ts'
import { type ArtifactKind, artifactKinds, parseArtifactId } from './schema.ts'
import type { UploadRow } from './store.ts'

/**
 * The parsed `Upload-Metadata` keys; a key that the client omitted is undefined. An empty `filetype` or
 * `name` counts as omitted.
 */
export interface UploadMetadata {
  readonly artifactId: string | undefined
  readonly filename: string
  /** The media type that the client claims, which may be wrong. */
  readonly filetype: string | undefined
  /** If undefined, the upload has the reservation's kind, otherwise `video`. */
  readonly kind: ArtifactKind | undefined
  readonly relatedTo: string | undefined
  readonly name: string | undefined
  /** SHA-256 of the whole upload, in lowercase hexadecimal. */
  readonly checksum: string | undefined
}

export const MAX_METADATA_BYTES = 8_192
export const MAX_NAME_LENGTH = 512
const HEADER = 'Upload-Metadata'

/** @throws ServiceError `invalid_value` whose `param` is the invalid key. */
export function parseMetadata(header: string | undefined): UploadMetadata {
  const values = parsePairs(header ?? '')
  const texts = new Map(known.map((key) => [key, decodeText(key, values.get(key))]))
  const parseWith = <T>(key: Key, parse: (text: string, key: Key) => T): T | undefined => {
    const text = texts.get(key)
    return text === undefined ? undefined : parse(text, key)
  }
  const relatedTo = parseWith('relatedTo', parseId)
  const artifactId = parseWith('artifactId', parseId)
  if (relatedTo !== undefined && relatedTo === artifactId)
    throw invalidMetadata('relatedTo', 'must not be the artifact itself')
  return {
    artifactId,
    filename: parseFilename(texts.get('filename')),
    filetype: parseWith('filetype', parseLine) || undefined,
    kind: parseWith('kind', parseKind),
    relatedTo,
    name: parseWith('name', (text, key) => parseLine(text.trim(), key)) || undefined,
    checksum: parseWith('checksum', parseChecksum),
  }
}

const known = ['artifactId', 'filename', 'filetype', 'kind', 'relatedTo', 'name', 'checksum'] as const
type Key = (typeof known)[number]

function parsePairs(header: string): Map<string, string> {
  const values = new Map<string, string>()
  if (header.length > MAX_METADATA_BYTES)
    throw invalidMetadata(HEADER, `must be at most ${MAX_METADATA_BYTES} bytes`)
  if (header.trim() === '') return values
  for (const pair of header.split(',')) {
    const [key = '', value = '', ...rest] = pair.trim().split(' ')
    if (!/^[!-~]+$/.test(key) || rest.length > 0)
      throw invalidMetadata(
        HEADER,
        'must be a comma-separated list of keys, each followed by a space and a Base64 value',
      )
    if (values.has(key)) throw invalidMetadata(key, 'must not be sent twice')
    if (value.length % 4 !== 0 || !/^[\w+/]*={0,2}$/.test(value) || value.includes('_'))
      throw invalidMetadata(key, 'must be encoded in Base64')
    values.set(key, value)
  }
  return values
}

function decodeMetadata(header: string): Record<string, string> {
  const texts = [...parsePairs(header)].map(([key, value]) => [key, Buffer.from(value, 'base64').toString()])
  return Object.fromEntries(texts)
}

function decodeText(key: Key, value: string | undefined): string | undefined {
  if (value === undefined) return undefined
  const bytes = Buffer.from(value, 'base64')
  if (!isUtf8(bytes)) throw invalidMetadata(key, 'must be UTF-8')
  return bytes.toString()
}

function parseFilename(text: string | undefined): string {
  if (text === undefined || text.trim() === '') throw invalidMetadata('filename', 'is required')
  return parseLine(text, 'filename')
}

function parseLine(text: string, key: Key): string {
  if (/\p{Cc}/u.test(text)) throw invalidMetadata(key, 'must not contain control characters')
  if ([...text].length > MAX_NAME_LENGTH)
    throw invalidMetadata(key, `must be at most ${MAX_NAME_LENGTH} characters`)
  return text
}

function parseId(text: string, key: Key): string {
  const id = parseArtifactId(text)
  if (id === undefined) throw invalidMetadata(key, 'must be a UUID')
  return id
}

function parseKind(text: string): ArtifactKind {
  const kind = artifactKinds.find((one) => one === text)
  if (kind === undefined) throw invalidMetadata('kind', `must be one of ${artifactKinds.join(', ')}`)
  return kind
}

function parseChecksum(text: string): string {
  const [, hex] = /^sha256:([0-9a-f]{64})$/i.exec(text) ?? []
  if (hex === undefined)
    throw invalidMetadata('checksum', 'must be sha256: followed by 64 hexadecimal digits')
  return hex.toLowerCase()
}

export function invalidMetadata(key: string, problem: string): ServiceError {
  return new ServiceError('invalid_value', `${key}: ${problem}`, { param: key })
}

export interface CompletedUpload {
  /** Identical for every delivery of this upload, so that handlers can ignore duplicates. */
  readonly eventId: string
  readonly artifactId: string
  readonly tenantId: string
  readonly kind: ArtifactKind
  readonly filename: string
  readonly filetype?: string
  readonly name?: string
  readonly relatedTo?: string
  readonly sizeBytes: number
  /** The verified SHA-256 in hexadecimal; present only if the client sent a checksum. */
  readonly sha256?: string
  readonly metadata: Readonly<Record<string, string>>
  /** Unix seconds at which the upload was completed. */
  readonly completedAt: number
}

/** The functions and the signal that a handler can use until it returns or times out. */
export interface UploadHooks {
  /**
   * Sets the artifact's outcome, which is durable when the promise resolves. @throws ServiceError
   * `invalid_value`, synchronously, if the value is not JSON, exceeds 64 KiB or has more than 64 levels of
   * nesting.
   */
  recordOutcome(value: unknown): Promise<void>
  /**
   * In `onUploadComplete`, reads the uploaded bytes, which are kept until the handler returns. In
   * `onConversionEnd`, reads the bytes that the server serves. @throws ServiceError `not_found` if the
   * artifact was deleted.
   */
  open(): Promise<Readable>
  /** Aborts when the handler times out, the artifact is deleted or the service stops. */
  readonly signal: AbortSignal
}

export function toCompletedUpload(row: UploadRow): CompletedUpload {
  return Object.freeze({
    eventId: row.blob,
    artifactId: row.id,
    tenantId: row.parent_key_id,
    kind: row.kind,
    filename: row.filename,
    ...(row.filetype === null ? {} : { filetype: row.filetype }),
    ...(row.name === null ? {} : { name: row.name }),
    ...(row.related_to === null ? {} : { relatedTo: row.related_to }),
    sizeBytes: row.received_bytes,
    ...(row.checksum === null ? {} : { sha256: row.checksum }),
    metadata: Object.freeze(decodeMetadata(row.metadata ?? '')),
    completedAt: row.finished_at ?? row.created_at,
  })
}

/** Describes the end of a conversion, with the fields of `CompletedUpload`. */
export interface EndedConversion extends CompletedUpload {
  /** The same in every delivery of this event, and different from the upload event's id. */
  readonly eventId: string
  /** `rejected`: the content is dangerous, and the artifact was deleted. */
  readonly result: 'converted' | 'original' | 'rejected'
  /** Why the upload was rejected or not converted. */
  readonly reason?: string
  /** The media type and size of the file that the server serves; absent for a rejected upload. */
  readonly mediaType?: string
  readonly servedBytes?: number
  /** Unix seconds. */
  readonly endedAt: number
}

export type ConversionEnd = Pick<EndedConversion, 'result' | 'endedAt'> &
  Partial<Record<'reason' | 'mediaType' | 'servedBytes', string | number | null>>

export function toEndedConversion(
  row: UploadRow,
  { result, endedAt, ...others }: ConversionEnd,
): EndedConversion {
  const known = Object.entries(others).filter(([, value]) => value != null)
  return {
    ...toCompletedUpload(row),
    ...(row.sha256 === null ? {} : { sha256: row.sha256 }),
    eventId: `${row.blob}-converted`,
    result,
    ...Object.fromEntries(known),
    endedAt,
  }
}

/** Called at least once for each complete upload, and retried until it succeeds. */
export type OnUploadComplete = (artifact: CompletedUpload, hooks: UploadHooks) => unknown

/** Called at least once for each conversion with a final result, and retried until it succeeds. */
export type OnConversionEnd = (conversion: EndedConversion, hooks: UploadHooks) => unknown
