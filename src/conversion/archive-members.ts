/** Checks that a ZIP archive's directory matches its members, so that all programs extract the same files. */
import { pipeline, type Readable } from 'node:stream'
import { crc32, createInflateRaw } from 'node:zlib'
import type { Entry, LocalFileHeader, ZipFile } from 'yauzl'
import { dangerous, unconvertible } from './job.ts'

export const STORED = 0
export const DEFLATED = 8
/** General purpose flag of a member whose checksum and sizes follow its data. */
export const HAS_DESCRIPTOR = 0x08
/**
 * Possible sizes of a data descriptor in bytes: 0 if it is missing, otherwise with or without a signature,
 * and with 4-byte or 8-byte sizes. Some writers omit it for folders.
 */
const descriptorBytes: readonly number[] = [0, 12, 16, 20, 24]
const LOCAL_HEADER_BYTES = 30
/** Marks a size that is stored in the ZIP64 extra field. */
const IN_EXTRA_FIELD = 0xffffffff
const ZIP64_FIELD = 0x0001

export interface MemberPlace {
  readonly start: number
  /** The offset after the last compressed byte. */
  readonly end: number
  readonly hasDescriptor: boolean
}

/**
 * Checks that a member's local header matches its directory entry. @throws ConversionRejection `unconvertible`
 */
export function assertSameHeaders(entry: Entry, header: LocalFileHeader): void {
  const sizes = readSizes(header)
  const hasDescriptor = (header.generalPurposeBitFlag & HAS_DESCRIPTOR) !== 0
  const isSame = (local: number, listed: number) => local === listed || (hasDescriptor && local === 0)
  if (
    header.compressionMethod !== entry.compressionMethod ||
    header.generalPurposeBitFlag !== entry.generalPurposeBitFlag ||
    !isSame(header.crc32, entry.crc32) ||
    !isSame(sizes.compressed, entry.compressedSize) ||
    !isSame(sizes.uncompressed, entry.uncompressedSize)
  )
    throw unconvertible('The archive contains a file with two different headers.')
  if (hasDescriptor && entry.compressionMethod === STORED && sizes.compressed !== entry.compressedSize)
    throw unconvertible('The archive contains an uncompressed file whose header does not state its size.')
}

function readSizes({ compressedSize, uncompressedSize, extraField }: LocalFileHeader) {
  for (let at = 0; at + 4 <= extraField.length; at += 4 + extraField.readUInt16LE(at + 2)) {
    const isZip64 = extraField.readUInt16LE(at) === ZIP64_FIELD && at + 20 <= extraField.length
    if (!isZip64 || compressedSize !== IN_EXTRA_FIELD || uncompressedSize !== IN_EXTRA_FIELD) continue
    const read = (offset: number) => Number(extraField.readBigUInt64LE(at + offset))
    return { compressed: read(12), uncompressed: read(4) }
  }
  return { compressed: compressedSize, uncompressed: uncompressedSize }
}

/**
 * Checks that the members fill the archive from its start to its directory.
 * @throws ConversionRejection `dangerous` if a gap could contain another member; otherwise `unconvertible`.
 */
export function assertNothingHidden(places: readonly MemberPlace[], directoryOffset: number): void {
  const sorted = [...places].sort((left, right) => left.start - right.start)
  let last = { end: 0, hasDescriptor: false }
  for (const next of [...sorted, { start: directoryOffset, end: directoryOffset, hasDescriptor: false }]) {
    const gapBytes = next.start - last.end
    const isUsual = last.hasDescriptor ? descriptorBytes.includes(gapBytes) : gapBytes === 0
    if (gapBytes >= LOCAL_HEADER_BYTES)
      throw dangerous('The archive contains bytes that its directory does not list.')
    if (!isUsual) throw unconvertible('The archive does not match its directory.')
    last = next
  }
}

/**
 * Yields a member's inflated bytes and checks them against the directory.
 * @throws ConversionRejection `unconvertible`
 */
export async function* readMember(zip: ZipFile, entry: Entry): AsyncIterable<Buffer> {
  const raw: Readable = await zip.openReadStreamPromise(entry, { decodeFileData: false })
  let [checksum, bytes, consumedBytes] = [0, 0, () => bytes]
  let decoded: Readable = raw
  if (entry.compressionMethod === DEFLATED) {
    const inflating = createInflateRaw()
    // Ignores errors here, because the loop below also receives them.
    decoded = pipeline(raw, inflating, () => {})
    consumedBytes = () => inflating.bytesWritten
  }
  try {
    for await (const chunk of decoded as AsyncIterable<Buffer>) {
      checksum = crc32(chunk, checksum)
      bytes += chunk.length
      if (bytes > entry.uncompressedSize) break
      yield chunk
    }
  } finally {
    raw.destroy()
  }
  // Bytes after the end of the compressed data could contain another member.
  const isWhole = bytes === entry.uncompressedSize && consumedBytes() === entry.compressedSize
  if (!isWhole || checksum !== entry.crc32) throw unconvertible('The archive is damaged.')
}
