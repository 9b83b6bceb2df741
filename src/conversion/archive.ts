/** Rejects ZIP archives and JSON projects that are damaged or could harm a user who unpacks them. */
import { isUtf8 } from 'node:buffer'
import { readFile, stat } from 'node:fs/promises'
import {
  type Entry,
  fromBufferPromise,
  getFileNameLowLevel,
  type LocalFileHeader,
  openPromise,
  type ZipFile,
} from 'yauzl'
import { depthOf } from '../lib/formats/json.ts'
import {
  assertNothingHidden,
  assertSameHeaders,
  DEFLATED,
  HAS_DESCRIPTOR,
  type MemberPlace,
  readMember,
  STORED,
} from './archive-members.ts'
import { ConversionRejection, dangerous, type Outcome, unconvertible } from './job.ts'
import { hasArchiveSignature, isArchive } from './media.ts'

const MIB = 1024 ** 2
const MAX_ENTRIES = 10_000
const MAX_INFLATED_BYTES = 8 * 1024 * MIB
/**
 * A ZIP bomb inflates a hundredfold or more. A small blank image does too, but is harmless below
 * `HARMLESS_BYTES`.
 */
const MAX_RATIO = 100
const HARMLESS_BYTES = 64 * MIB
const MAX_DEPTH = 3
const MAX_INNER_BYTES = 64 * MIB

/** Totals for the archive and all archives inside it. */
interface Tally {
  readonly archiveBytes: number
  inflatedBytes: number
  entries: number
}

const options = { decodeStrings: false, autoClose: false, lazyEntries: true }

async function assertArchive(path: string): Promise<void> {
  try {
    const zip = await openPromise(path, options)
    await assertEntries(zip, { archiveBytes: zip.fileSize, inflatedBytes: 0, entries: 0 }, 1)
    zip.close()
  } catch (error) {
    if (error instanceof ConversionRejection) throw error
    throw unconvertible('The archive is damaged.', error)
  }
}

async function assertEntries(zip: ZipFile, tally: Tally, depth: number): Promise<void> {
  const names = new Set<string>()
  const places: MemberPlace[] = []
  // Before the first entry is read, this is the offset of the directory. The library declares the wrong type.
  const directoryOffset = Number(zip.readEntryCursor)
  for await (const entry of zip.eachEntry()) {
    tally.entries += 1
    if (tally.entries > MAX_ENTRIES) throw dangerous(`The archive contains more than ${MAX_ENTRIES} files.`)
    const header = await zip.readLocalFileHeaderPromise(entry)
    const name = toComparable(readName(entry, header))
    if (names.has(name)) throw unconvertible('The archive contains two files with the same name.')
    names.add(name)
    assertKind(entry)
    assertSameHeaders(entry, header)
    places.push({
      start: entry.relativeOffsetOfLocalHeader,
      end: header.fileDataStart + entry.compressedSize,
      hasDescriptor: (header.generalPurposeBitFlag & HAS_DESCRIPTOR) !== 0,
    })
    const inner = await inflate(zip, entry, tally)
    if (inner === undefined) continue
    if (depth === MAX_DEPTH)
      throw dangerous('The archive contains archives that are nested too deeply to check.')
    await assertEntries(await fromBufferPromise(inner, options), tally, depth + 1)
  }
  assertNothingHidden(places, directoryOffset)
}

/**
 * ZIP stores each name twice: in the directory and before the member's bytes. Programs disagree on which one
 * to use, so both must be equal.
 */
function readName(entry: Entry, { fileName }: LocalFileHeader): string {
  const names = [entry.fileNameRaw, fileName].flatMap((raw) => decodeNames(entry, raw))
  for (const name of names) assertName(name)
  if (!fileName.equals(entry.fileNameRaw))
    throw unconvertible('The archive stores two different names for the same file. Create it again.')
  return decodeNames(entry, fileName)[0]
}

const KIND_BITS = 0o170000
/** The mode that some Java programs write for folders. No file type has this mode. */
const NO_MODE = 0xffff
/** File kinds: unspecified, regular file, directory. */
const plainKinds = [0, 0o100000, 0o040000]

function assertKind(entry: Entry): void {
  const mode = entry.externalFileAttributes >>> 16
  const kind = mode === NO_MODE ? 0 : mode & KIND_BITS
  if (!plainKinds.includes(kind)) throw dangerous('The archive contains a link or other special file.')
  if (entry.isEncrypted()) throw unconvertible('The archive is encrypted.')
  if (entry.compressionMethod !== STORED && entry.compressionMethod !== DEFLATED)
    throw unconvertible('The archive uses an unsupported compression method; use Deflate.')
}

async function inflate(zip: ZipFile, entry: Entry, tally: Tally): Promise<Buffer | undefined> {
  let isInner: boolean | undefined
  let innerBytes = 0
  const kept: Buffer[] = []
  for await (const chunk of readMember(zip, entry)) {
    isInner ??= hasArchiveSignature(chunk)
    count(tally, chunk.length)
    if (!isInner) continue
    innerBytes += chunk.length
    if (innerBytes > MAX_INNER_BYTES)
      throw unconvertible(`The archive contains an archive larger than ${MAX_INNER_BYTES / MIB} MiB.`)
    kept.push(chunk)
  }
  return isInner ? Buffer.concat(kept) : undefined
}

function count(tally: Tally, bytes: number): void {
  tally.inflatedBytes += bytes
  const { inflatedBytes, archiveBytes } = tally
  const isBomb = inflatedBytes > HARMLESS_BYTES && inflatedBytes > archiveBytes * MAX_RATIO
  if (isBomb || inflatedBytes > MAX_INFLATED_BYTES)
    throw dangerous('The archive is a ZIP bomb: its content is far larger than the archive.')
}

/** The maximum length of a file name in common file systems. */
const MAX_SEGMENT_BYTES = 255
const MAX_SEGMENTS = 64

/** Returns the member's name with and without the Unicode extra field. Preserves backslashes. */
function decodeNames({ generalPurposeBitFlag, extraFields }: Entry, raw: Buffer): [string, string] {
  const decode = (fields: Entry['extraFields']) =>
    getFileNameLowLevel(generalPurposeBitFlag, raw, fields, true)
  return [decode(extraFields), decode([])]
}

function assertName(name: string): void {
  const segments = name.replace(/\/$/, '').split('/')
  const isAbsolute = /^[/\\]|^[a-z]:/i.test(name)
  if (isAbsolute || name.split(/[/\\]/).includes('..'))
    throw dangerous('The archive contains a file name that points outside its folder.')
  const isWellFormed = segments.every(isSegment) && segments.length <= MAX_SEGMENTS
  if (!isWellFormed) throw unconvertible('The archive contains an invalid file name.')
}

function isSegment(segment: string): boolean {
  const isPlain = segment !== '' && segment !== '.' && !/[\p{Cc}\p{Cs}\\\ufffd]/u.test(segment)
  return isPlain && Buffer.byteLength(segment) <= MAX_SEGMENT_BYTES
}

function toComparable(name: string): string {
  return name.replace(/\/$/, '').normalize('NFC').toLowerCase()
}

const MAX_JSON_MEBIBYTES = 64
/** Equals the limit for JSON requests. */
const MAX_JSON_DEPTH = 64

/**
 * Checks a project, which must be a ZIP archive or a JSON file.
 * @throws ConversionRejection `dangerous` for ZIP bombs, links and names that point outside the folder;
 * otherwise `unconvertible`.
 */
export async function checkProject(source: string): Promise<Outcome> {
  if (await isArchive(source)) {
    await assertArchive(source)
    return { unchanged: { mediaType: 'application/zip' } }
  }
  const { size } = await stat(source)
  if (size > MAX_JSON_MEBIBYTES * 1024 ** 2)
    throw unconvertible(`The project is not a ZIP archive and is larger than ${MAX_JSON_MEBIBYTES} MiB.`)
  assertJson(await readFile(source))
  return { unchanged: { mediaType: 'application/json' } }
}

function assertJson(bytes: Buffer): void {
  if (!isUtf8(bytes)) throw unconvertible('The project is neither a ZIP archive nor UTF-8 JSON.')
  if (depthOf(bytes) > MAX_JSON_DEPTH)
    throw unconvertible(`The project's JSON is nested deeper than ${MAX_JSON_DEPTH} levels.`)
  let value: unknown
  try {
    value = JSON.parse(bytes.toString())
  } catch (error) {
    throw unconvertible('The project is neither a ZIP archive nor JSON.', error)
  }
  if (typeof value !== 'object' || value === null)
    throw unconvertible("The project's JSON must be an object or an array.")
}
