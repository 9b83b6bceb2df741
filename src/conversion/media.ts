/** Detects the type of uploaded files and parses the output of ffprobe. */
import { open } from 'node:fs/promises'
import { z } from 'zod'
import { HEAD_BYTES, sniff } from '../storage/blobs.ts'
import { unconvertible } from './job.ts'

export interface Media {
  /** Undefined if the file does not contain it, as in browser recordings. */
  readonly durationSeconds: number | undefined
  readonly isVideoFit: boolean
  readonly widthPixels: number
  readonly heightPixels: number
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
    throw unconvertible('The file contains too much metadata for a video.', error)
  }
}

export const probeEntries =
  'format=duration:stream=codec_type,codec_name,profile,pix_fmt,width,height,channels:stream_disposition=attached_pic'

const fitProfiles = ['Baseline', 'Constrained Baseline', 'Main', 'High']
const fitFormats = ['yuv420p', 'yuvj420p']
const fitAudioProfiles = ['LC', 'HE-AAC', 'HE-AACv2']

/**
 * Parses ffprobe's JSON. Returns undefined if there is no video stream other than a cover image.
 * @throws ConversionRejection if the JSON was truncated.
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

/**
 * ffmpeg's demuxer for a video. Always set explicitly, because ffmpeg would also detect playlists, which read
 * other files.
 */
export type Demuxer = 'mov' | 'matroska' | 'avi' | 'mpegts' | 'mpeg' | 'flv' | 'asf' | 'ogg'

const demuxers: Readonly<Record<string, Demuxer>> = {
  'video/mp4': 'mov',
  'video/quicktime': 'mov',
  'video/x-m4v': 'mov',
  'video/3gpp': 'mov',
  'video/3gpp2': 'mov',
  'video/matroska': 'matroska',
  'video/webm': 'matroska',
  'video/vnd.avi': 'avi',
  'video/mp2t': 'mpegts',
  'video/MP1S': 'mpeg',
  'video/MP2P': 'mpeg',
  'video/x-flv': 'flv',
  'video/x-ms-asf': 'asf',
  'application/vnd.ms-asf': 'asf',
  'video/ogg': 'ogg',
}

const pictures = ['image/jpeg', 'image/png', 'image/apng', 'image/webp']

export async function sniffVideo(path: string): Promise<Demuxer | undefined> {
  return demuxers[await sniff(await readHead(path))]
}

export async function isPicture(path: string): Promise<boolean> {
  return pictures.includes(await sniff(await readHead(path)))
}

export async function isArchive(path: string): Promise<boolean> {
  return hasArchiveSignature(await readHead(path))
}

/** Detects the header of a ZIP member, or the end of an empty archive. */
export function hasArchiveSignature(head: Uint8Array): boolean {
  const [p, k, third, fourth] = head
  return p === 0x50 && k === 0x4b && ((third === 3 && fourth === 4) || (third === 5 && fourth === 6))
}

async function readHead(path: string): Promise<Uint8Array> {
  await using file = await open(path)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
  return buffer.subarray(0, bytesRead)
}
