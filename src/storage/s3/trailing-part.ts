/** The object beside a multipart upload from which any process goes on: the bytes behind the last part, and what must be known of the parts. */
import type { Bucket, SentPart } from './bucket.ts'

/** What a tail holds. */
export interface TrailingPart {
  /** Undefined as long as nothing was sent as a part. */
  readonly uploadId: string | undefined
  /** How large each part is. */
  readonly partBytes: number
  /** In order; there may be gaps in their numbers. */
  readonly parts: readonly SentPart[]
  /** The number behind that of the last part. */
  readonly nextNumber: number
  readonly bytes: Uint8Array
}

/** What its name says of it, so that a list is enough to choose. No two writers give one name. */
export interface TrailingPartEntry {
  readonly key: string
  /** The fence of the lease it was written under. */
  readonly fence: number
  /** So many bytes lie in the parts. */
  readonly startBytes: number
  /** So many bytes there are with its own. */
  readonly endBytes: number
}

/** The name of a tail in that folder, which ends with a slash. */
export function toTrailingKey(
  folder: string,
  { fence, startBytes, endBytes }: Omit<TrailingPartEntry, 'key'>,
): string {
  return `${folder}${fence}-${startBytes}-${endBytes}`
}

/** Reads a name; undefined when it is none. */
export function parseTrailingKey(key: string): TrailingPartEntry | undefined {
  const [, fence, startBytes, endBytes] = /\/(\d+)-(\d+)-(\d+)$/.exec(key) ?? []
  if (fence === undefined) return undefined
  return { key, fence: Number(fence), startBytes: Number(startBytes), endBytes: Number(endBytes) }
}

export async function listTrailingParts(
  bucket: Bucket,
  folder: string,
  signal: AbortSignal,
): Promise<TrailingPartEntry[]> {
  const trailingParts: TrailingPartEntry[] = []
  for await (const { key } of bucket.list(folder, signal)) {
    const trailing = parseTrailingKey(key)
    if (trailing !== undefined) trailingParts.push(trailing)
  }
  return trailingParts
}

/**
 * The tail to go on from at `offset`, which was written down. Several may reach that far: one of a writer that was fenced out may
 * hold bytes that were never promised behind those that were. Every writer began where the one before had last written down, so the
 * highest fence is right.
 */
export function chooseTrailingPart(
  trailingParts: readonly TrailingPartEntry[],
  offset: number,
): TrailingPartEntry | undefined {
  return trailingParts
    .filter(({ startBytes, endBytes }) => startBytes <= offset && offset <= endBytes)
    .toSorted((one, other) => other.fence - one.fence || other.endBytes - one.endBytes)[0]
}

/** A line of JSON, and the bytes. */
export function encodeTrailingPart({ uploadId, partBytes, parts, nextNumber, bytes }: TrailingPart): Buffer {
  const head = { uploadId, partBytes, nextNumber, parts }
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), bytes])
}

export function decodeTrailingPart(encoded: Buffer): TrailingPart {
  const end = encoded.indexOf('\n')
  return {
    uploadId: undefined,
    ...JSON.parse(encoded.toString('utf8', 0, end)),
    bytes: encoded.subarray(end + 1),
  }
}
