/** What ffprobe tells of a video, and whether browsers can play what is in it. */

import { open } from 'node:fs/promises'
import { z } from 'zod'
import { HEAD_BYTES, sniff } from '../storage/blobs.ts'
import { unconvertible } from './job.ts'

/** What is known of a video before it is converted. */
export interface Media {
  /** Undefined where the file does not say, as recordings of browsers do not. */
  readonly durationSeconds: number | undefined
  /** Whether the pictures can stay as they are. */
  readonly isVideoFit: boolean
  readonly widthPixels: number
  readonly heightPixels: number
  /** Undefined when there is no sound. */
  readonly audio: { readonly isFit: boolean; readonly channels: number } | undefined
}

const Probe = z.object({
  streams: z.array(
    z.object({
      codec_type: z.string().optional(),
      codec_name: z.string().optional(),
      profile: z.string().optional(),
      pix_fmt: z.string().optional(),
      width: z.int().optional(),
      height: z.int().optional(),
      channels: z.int().optional(),
      disposition: z.object({ attached_pic: z.int() }).optional(),
    }),
  ),
  format: z.object({ duration: z.string().optional() }).optional(),
})

function parseJson(json: string): z.infer<typeof Probe> {
  try {
    return Probe.parse(JSON.parse(json))
  } catch (error) {
    throw unconvertible('The file holds more than a video does.', error)
  }
}

/** What ffprobe is asked for. */
export const probeEntries =
  'format=duration:stream=codec_type,codec_name,profile,pix_fmt,width,height,channels:stream_disposition=attached_pic'

/** Every browser plays these; of H.264 that is not all there is. */
const fitProfiles = ['Baseline', 'Constrained Baseline', 'Main', 'High']
const fitFormats = ['yuv420p', 'yuvj420p']
const fitAudioProfiles = ['LC', 'HE-AAC', 'HE-AACv2']

/**
 * Reads what ffprobe printed; undefined when it holds no moving picture. A cover is none.
 * @throws ConversionRejection `unconvertible` when it is more than was kept of it.
 */
export function parseProbe(json: string): Media | undefined {
  const { streams, format } = parseJson(json)
  const video = streams.find((one) => one.codec_type === 'video' && one.disposition?.attached_pic !== 1)
  const audio = streams.find((one) => one.codec_type === 'audio')
  if (video === undefined) return undefined
  const duration = Number(format?.duration)
  return {
    durationSeconds: duration > 0 ? duration : undefined,
    isVideoFit:
      video.codec_name === 'h264' &&
      fitProfiles.includes(video.profile ?? '') &&
      fitFormats.includes(video.pix_fmt ?? ''),
    widthPixels: video.width ?? 0,
    heightPixels: video.height ?? 0,
    audio: audio && {
      isFit: audio.codec_name === 'aac' && fitAudioProfiles.includes(audio.profile ?? ''),
      channels: audio.channels ?? 2,
    },
  }
}

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
