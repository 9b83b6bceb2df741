/** Tells by the first bytes of a file what it is; nothing a sender says of it is believed. Security: 2.9. */
import { open } from 'node:fs/promises'
import { HEAD_BYTES } from '../storage/blobs.ts'
import { sniff } from '../storage/sniff.ts'

/** The one reader that a video is opened with; a program left to choose would also take playlists. */
export type Demuxer = 'mov' | 'matroska'

const demuxers: Readonly<Record<string, Demuxer>> = {
  'video/mp4': 'mov',
  'video/quicktime': 'mov',
  'video/x-m4v': 'mov',
  'video/3gpp': 'mov',
  'video/3gpp2': 'mov',
  'video/matroska': 'matroska',
  'video/webm': 'matroska',
}

const pictures = ['image/jpeg', 'image/png', 'image/apng', 'image/webp']

/** The demuxer for a video; undefined for anything that is none, or of a kind that is not taken. */
export async function sniffVideo(path: string): Promise<Demuxer | undefined> {
  return demuxers[await sniff(await readHead(path))]
}

/** Whether a file begins like a picture of a kind that is taken: JPEG, PNG or WebP. */
export async function isPicture(path: string): Promise<boolean> {
  return pictures.includes(await sniff(await readHead(path)))
}

/** Whether a file begins like a ZIP archive, an empty one included. */
export async function isArchive(path: string): Promise<boolean> {
  return hasArchiveSignature(await readHead(path))
}

/** Whether bytes begin with the header of a member, or with the end of an archive that has none. */
export function hasArchiveSignature(head: Uint8Array): boolean {
  const [p, k, third, fourth] = head
  return p === 0x50 && k === 0x4b && ((third === 3 && fourth === 4) || (third === 5 && fourth === 6))
}

async function readHead(path: string): Promise<Uint8Array> {
  await using file = await open(path)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
  return buffer.subarray(0, bytesRead)
}
