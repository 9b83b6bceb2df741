/** The command lines of ffmpeg and ffprobe: what every one of them holds for safety, and what each is for. Security: 2.9. */
import { type Demuxer, type Media, probeEntries } from './media.ts'

/** A video as it lies on the disk. */
export interface Source {
  readonly path: string
  readonly demuxer: Demuxer
}

/** No one block of memory larger than this. */
const MAX_ALLOCATION_BYTES = 512 * 1024 ** 2
/** Longer than either side of a picture that was encoded anew. */
const MAX_SIDE_PIXELS = 1_920
const POSTER_SIDE_PIXELS = 1_280

const threads = ['-threads', '2']
/** Only the first moving picture and the first sound; nothing that could tell where and when it was taken. */
const firstVideo = ['-map', '0:V:0']
const nothingElse = ['-sn', '-dn', '-map_metadata', '-1', '-map_chapters', '-1']

/** Nobody chooses what reads the file but we, and whatever reads it opens nothing besides it. */
function toInput({ path, demuxer }: Source): string[] {
  return [
    ...['-hide_banner', '-loglevel', 'error'],
    ...['-max_alloc', String(MAX_ALLOCATION_BYTES)],
    ...['-protocol_whitelist', 'file'],
    ...['-format_whitelist', 'mov,matroska,webm'],
    ...['-f', demuxer],
    ...threads,
    ...['-i', `file:${path}`],
  ]
}

/** Asks ffprobe what a video holds. */
export function toProbeArguments(source: Source): string[] {
  return [...toInput(source), '-show_entries', probeEntries, '-of', 'json']
}

const progress = ['-progress', 'pipe:1', '-nostats']

/** Has ffmpeg read a video to its end, so that its progress tells how long it is. */
export function toMeasureArguments(source: Source): string[] {
  return ['-nostdin', ...toInput(source), ...firstVideo, '-c', 'copy', ...progress, '-f', 'null', '-']
}

/** Has ffmpeg make an MP4 with the index in front; pictures and sound that are fit already are copied as they are. */
export function toConversionArguments(
  source: Source,
  { isVideoFit, audio }: Pick<Media, 'isVideoFit' | 'audio'>,
  output: { path: string; maxBytes: number },
): string[] {
  const isAudioFit = audio?.isFit ?? true
  return [
    '-nostdin',
    ...toInput(source),
    ...[...firstVideo, '-map', '0:a:0?', ...nothingElse],
    ...(isVideoFit ? ['-c:v', 'copy'] : toVideoEncoding()),
    ...(isAudioFit ? ['-c:a', 'copy'] : ['-c:a', 'aac', '-b:a', '128k', '-ac', toChannels(audio?.channels)]),
    ...threads,
    ...['-movflags', '+faststart', '-fs', String(output.maxBytes)],
    ...progress,
    ...['-f', 'mp4', '-y', `file:${output.path}`],
  ]
}

function toVideoEncoding(): string[] {
  return [
    ...['-filter_threads', '1', '-vf', toScale(MAX_SIDE_PIXELS)],
    ...['-c:v', 'libx264', '-preset', 'veryfast', '-crf', '23', '-profile:v', 'high', '-pix_fmt', 'yuv420p'],
  ]
}

function toChannels(channels = 2): string {
  return String(Math.min(Math.max(channels, 1), 2))
}

/** Has ffmpeg take one picture out of a video, as a JPEG. */
export function toPosterArguments(source: Source, atSeconds: number, path: string): string[] {
  return [
    '-nostdin',
    ...['-ss', atSeconds.toFixed(3)],
    ...toInput(source),
    ...[...firstVideo, '-an', ...nothingElse],
    ...['-frames:v', '1', '-filter_threads', '1', '-vf', toScale(POSTER_SIDE_PIXELS)],
    ...['-c:v', 'mjpeg', '-pix_fmt', 'yuvj420p', '-q:v', '4', ...threads],
    // Not image2, which would read patterns into the name.
    ...['-f', 'mjpeg', '-y', `file:${path}`],
  ]
}

/** Makes a picture fit into a square and leaves a smaller one as it is; H.264 wants even sides. */
function toScale(sidePixels: number): string {
  const side = (name: string) => `'min(${sidePixels},${name})'`
  return `scale=${side('iw')}:${side('ih')}:force_original_aspect_ratio=decrease:force_divisible_by=2`
}
