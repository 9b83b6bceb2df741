/** What the members of an archive may be called. */
import { type Entry, getFileNameLowLevel } from 'yauzl'
import { dangerous, unconvertible } from './refusal.ts'

/** Of one folder or file, in bytes: what file systems take. */
const MAX_SEGMENT_BYTES = 255
const MAX_SEGMENTS = 64

/** A member's name as it is written in the archive, with and without the field that corrects it; a backslash stays one. */
export function decodeNames({ generalPurposeBitFlag, extraFields }: Entry, raw: Buffer): [string, string] {
  const decode = (fields: Entry['extraFields']) =>
    getFileNameLowLevel(generalPurposeBitFlag, raw, fields, true)
  return [decode(extraFields), decode([])]
}

/** @throws ConversionRefusal `dangerous` for a name that leads out of the folder it is unpacked into, wherever that is done. */
export function assertName(name: string): void {
  const segments = name.replace(/\/$/, '').split('/')
  const isAbsolute = /^[/\\]|^[a-z]:/i.test(name)
  if (isAbsolute || name.split(/[/\\]/).includes('..'))
    throw dangerous('The archive holds a name that leads out of its folder.')
  const isWellFormed = segments.every(isSegment) && segments.length <= MAX_SEGMENTS
  if (!isWellFormed) throw unconvertible('The archive holds a name that is not well-formed.')
}

function isSegment(segment: string): boolean {
  const isPlain = segment !== '' && segment !== '.' && !/[\p{Cc}\p{Cs}\\\ufffd]/u.test(segment)
  return isPlain && Buffer.byteLength(segment) <= MAX_SEGMENT_BYTES
}

/** A name as the least discerning file system sees it. */
export function toComparable(name: string): string {
  return name.replace(/\/$/, '').normalize('NFC').toLowerCase()
}
