/**
 * Defines the trailing part: an object that contains the bytes after the last full part and the list of
 * parts. Any replica can use it to resume the upload.
 */
import type { SentPart } from './bucket.ts'

export interface TrailingPart {
  readonly uploadId: string | undefined
  readonly partBytes: number
  /** In order; part numbers may have gaps. */
  readonly parts: readonly SentPart[]
  readonly nextNumber: number
  readonly bytes: Uint8Array
}

/** A parsed object key. No two writers create the same key. */
export interface TrailingPartEntry {
  readonly key: string
  readonly fence: number
  readonly startBytes: number
  /** Offset after the last byte. */
  readonly endBytes: number
}

export function toTrailingKey(folder: string, fence: number, startBytes: number, endBytes: number): string {
  return `${folder}${fence}-${startBytes}-${endBytes}`
}

export function parseTrailingKey(key: string): TrailingPartEntry | undefined {
  const [, fence, startBytes, endBytes] = /\/(\d+)-(\d+)-(\d+)$/.exec(key) ?? []
  if (fence === undefined) return undefined
  return { key, fence: Number(fence), startBytes: Number(startBytes), endBytes: Number(endBytes) }
}

/** Chooses the highest fence, because the others may contain unacknowledged bytes from fenced-out writers. */
export function chooseTrailingPart(
  trailingParts: readonly TrailingPartEntry[],
  offset: number,
): TrailingPartEntry | undefined {
  return trailingParts
    .filter(({ startBytes, endBytes }) => startBytes <= offset && offset <= endBytes)
    .toSorted((one, other) => other.fence - one.fence || other.endBytes - one.endBytes)[0]
}

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
