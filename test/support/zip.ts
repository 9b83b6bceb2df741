/** Writes valid and invalid ZIP archives. */
import { crc32, deflateRawSync } from 'node:zlib'

export interface Member {
  readonly name: string | Buffer
  readonly data?: string | Uint8Array
  readonly isStored?: boolean
  /** The Unix file mode, such as 0o120777 for a symbolic link. */
  readonly mode?: number
  /** The name in the local header; by default the same as in the central directory. */
  readonly innerName?: string
  /** Overrides the correct value in the headers. */
  readonly checksum?: number
  readonly sizeBytes?: number
  readonly method?: number
  readonly flags?: number
  readonly extra?: Buffer
  /** Extra bytes that are counted as compressed data. */
  readonly tail?: Buffer
  /** Extra bytes after the member that no header counts, such as a data descriptor. */
  readonly after?: Buffer
  /** Writes zeros as the checksum and sizes in the local header, as if a data descriptor followed. */
  readonly isUnstated?: boolean
}

const UTF8 = 0x800

export function makeZip(members: readonly Member[]): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const member of members) {
    const { local, toEntry } = renderMember(member)
    directory.push(toEntry(offset, toName(member.name)))
    parts.push(local)
    offset += local.length
  }
  const size = directory.reduce((sum, entry) => sum + entry.length, 0)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(directory.length, 8)
  end.writeUInt16LE(directory.length, 10)
  end.writeUInt32LE(size, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...parts, ...directory, end])
}

function toName(name: string | Buffer): Buffer {
  return typeof name === 'string' ? Buffer.from(name) : name
}

function renderMember(member: Member) {
  const { data = '', isStored = false, mode = 0o100644, flags = UTF8, extra = Buffer.alloc(0) } = member
  const bytes = Buffer.from(data)
  const { tail = Buffer.alloc(0), after = Buffer.alloc(0) } = member
  const packed = Buffer.concat([isStored ? bytes : deflateRawSync(bytes, { level: 9 }), tail])
  const common = Buffer.alloc(22)
  common.writeUInt16LE(20, 0)
  common.writeUInt16LE(flags, 2)
  common.writeUInt16LE(member.method ?? (isStored ? 0 : 8), 4)
  common.writeUInt32LE(member.checksum ?? crc32(bytes), 10)
  common.writeUInt32LE(packed.length, 14)
  common.writeUInt32LE(member.sizeBytes ?? bytes.length, 18)
  const sign = (signature: number) => {
    const buffer = Buffer.alloc(4)
    buffer.writeUInt32LE(signature)
    return buffer
  }
  const inner = toName(member.innerName ?? member.name)
  const lengths = Buffer.alloc(4)
  lengths.writeUInt16LE(inner.length, 0)
  const toEntry = (offset: number, name: Buffer) => {
    const rest = Buffer.alloc(18)
    rest.writeUInt16LE(name.length, 0)
    rest.writeUInt16LE(extra.length, 2)
    rest.writeUInt32LE((mode << 16) >>> 0, 10)
    rest.writeUInt32LE(offset, 14)
    // 3 marks the host system as Unix, so that readers use the mode.
    return Buffer.concat([sign(0x02014b50), Buffer.from([20, 3]), common, rest, name, extra])
  }
  const stated = Buffer.from(common)
  if (member.isUnstated) stated.fill(0, 10)
  return { local: Buffer.concat([sign(0x04034b50), stated, lengths, inner, packed, after]), toEntry }
}
