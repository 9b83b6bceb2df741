/** Reads what a client says of its upload in `Upload-Metadata`. Protocol: tus 1.0.0, Upload-Metadata. */
import { isUtf8 } from 'node:buffer'
import type { Readable } from 'node:stream'
import { ServiceError } from '../lib/errors.ts'
import { type ArtifactKind, artifactKinds, parseArtifactId } from './schema.ts'
import type { UploadRow } from './store.ts'

/** What is said; a key that is absent was not sent, or held nothing where that means nothing. */
export interface UploadMetadata {
  readonly artifactId: string | undefined
  readonly filename: string
  /** Never believed. */
  readonly filetype: string | undefined
  /** `video` where nothing else says what it is. Decision: 9. */
  readonly kind: ArtifactKind | undefined
  readonly relatedTo: string | undefined
  readonly name: string | undefined
  /** SHA-256 of the whole, in lower-case hexadecimal. */
  readonly checksum: string | undefined
}

/** Security: 2.5. */
export const MAX_METADATA_BYTES = 8_192
/** In code points. */
export const MAX_NAME_LENGTH = 512
const HEADER = 'Upload-Metadata'

/** @throws ServiceError `invalid_value` naming the key at fault. */
export function parseMetadata(header: string | undefined): UploadMetadata {
  const values = parsePairs(header ?? '')
  const texts = new Map(known.map((key) => [key, decodeText(key, values.get(key))]))
  const relatedTo = parseWith('relatedTo', texts, parseId)
  const artifactId = parseWith('artifactId', texts, parseId)
  if (relatedTo !== undefined && relatedTo === artifactId)
    throw refused('relatedTo', 'is the artifact itself')
  return {
    artifactId,
    filename: parseFilename(texts.get('filename')),
    filetype: parseWith('filetype', texts, parseLine) || undefined,
    kind: parseWith('kind', texts, parseKind),
    relatedTo,
    name: parseWith('name', texts, (text, key) => parseLine(text.trim(), key)) || undefined,
    checksum: parseWith('checksum', texts, parseChecksum),
  }
}

const known = ['artifactId', 'filename', 'filetype', 'kind', 'relatedTo', 'name', 'checksum'] as const
type Key = (typeof known)[number]

/**
 * The values by key, as they are encoded. "The key and value MUST be separated by a space. The key MUST NOT contain spaces and
 * commas and MUST NOT be empty. […] the value MUST be Base64 encoded. All keys MUST be unique. The value MAY be empty."
 */
function parsePairs(header: string): Map<string, string> {
  const values = new Map<string, string>()
  if (header.length > MAX_METADATA_BYTES) throw refused(HEADER, `is longer than ${MAX_METADATA_BYTES} bytes`)
  if (header.trim() === '') return values
  for (const pair of header.split(',')) {
    const [key = '', value = '', ...rest] = pair.trim().split(' ')
    if (!/^[!-~]+$/.test(key) || rest.length > 0)
      throw refused(HEADER, 'must be pairs of a key and a value in Base64, separated by commas')
    if (values.has(key)) throw refused(key, 'was sent twice')
    if (value.length % 4 !== 0 || !/^[\w+/]*={0,2}$/.test(value) || value.includes('_'))
      throw refused(key, 'is not encoded in Base64')
    values.set(key, value)
  }
  return values
}

/** Every key of a header that was taken, known here or not, with its value as text. */
export function decodeMetadata(header: string): Record<string, string> {
  const texts = [...parsePairs(header)].map(([key, value]) => [key, Buffer.from(value, 'base64').toString()])
  return Object.fromEntries(texts)
}

function decodeText(key: Key, value: string | undefined): string | undefined {
  if (value === undefined) return undefined
  const bytes = Buffer.from(value, 'base64')
  if (!isUtf8(bytes)) throw refused(key, 'is not UTF-8')
  return bytes.toString()
}

function parseWith<T>(
  key: Key,
  texts: ReadonlyMap<Key, string | undefined>,
  parse: (text: string, key: Key) => T,
): T | undefined {
  const text = texts.get(key)
  return text === undefined ? undefined : parse(text, key)
}

function parseFilename(text: string | undefined): string {
  if (text === undefined || text.trim() === '') throw refused('filename', 'is required')
  return parseLine(text, 'filename')
}

/** Text that can be shown in one line. Security: 2.5. */
function parseLine(text: string, key: Key): string {
  if (/\p{Cc}/u.test(text)) throw refused(key, 'holds control characters')
  if ([...text].length > MAX_NAME_LENGTH) throw refused(key, `is longer than ${MAX_NAME_LENGTH} characters`)
  return text
}

function parseId(text: string, key: Key): string {
  const id = parseArtifactId(text)
  if (id === undefined) throw refused(key, 'is not a UUID')
  return id
}

function parseKind(text: string): ArtifactKind {
  const kind = artifactKinds.find((one) => one === text)
  if (kind === undefined) throw refused('kind', `must be one of ${artifactKinds.join(', ')}`)
  return kind
}

function parseChecksum(text: string): string {
  const [, hex] = /^sha256:([0-9a-f]{64})$/i.exec(text) ?? []
  if (hex === undefined) throw refused('checksum', 'must be sha256: and 64 hexadecimal digits')
  return hex.toLowerCase()
}

/** What is wrong with a key of the metadata. */
export function refused(key: string, problem: string): ServiceError {
  return new ServiceError('invalid_value', `${key}: ${problem}`, { param: key })
}

/** A complete upload; what is optional is absent where nobody said it. */
export interface CompletedUpload {
  /** One for each upload, and the same in every delivery: who has seen it has seen the event. */
  readonly eventId: string
  readonly artifactId: string
  /** The public part of the parent key it belongs to. */
  readonly tenantId: string
  readonly kind: ArtifactKind
  readonly filename: string
  /** The media type as the client sent it; nobody has checked it. */
  readonly filetype?: string
  readonly name?: string
  /** The artifact it belongs to. */
  readonly relatedTo?: string
  readonly sizeBytes: number
  /** In hexadecimal; only where the client announced it, and then the bytes were compared with it. */
  readonly sha256?: string
  /** Every key of `Upload-Metadata`, decoded. */
  readonly metadata: Readonly<Record<string, string>>
  /** When the last byte was recorded, in Unix seconds. */
  readonly completedAt: number
}

/** What a host may do while it handles an upload; all of it ends with the delivery. */
export interface UploadHooks {
  /**
   * Keeps a JSON value with the artifact, in the place of the one before. It is kept even if the handler fails afterwards, and once the
   * promise resolves it survives a crash.
   * @throws ServiceError `invalid_value` at once, for what is no JSON, more than 64 KiB of it, or deeper than 64.
   */
  recordOutcome(value: unknown): Promise<void>
  /** The bytes as they were uploaded, as a stream; they are kept until the handler has returned. */
  open(): Promise<Readable>
  /** Aborts when nobody waits for the handler any more: its time is over, the artifact was removed, or the service stops. */
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

/** Told of each complete upload, again and again until it returns, or its promise resolves; at least once. Decision: 9. */
export type OnUploadComplete = (artifact: CompletedUpload, hooks: UploadHooks) => unknown
