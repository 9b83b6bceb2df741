/**
 * Builds the ffmpeg and ffprobe command lines, with the restrictions that make them safe for untrusted files.
 */
import { type Demuxer, type Media, probeEntries } from './media.ts'

export interface Source {
  readonly path: string
  readonly demuxer: Demuxer
}

const MAX_ALLOCATION_BYTES = 512 * 1024 ** 2
const MAX_SIDE_PIXELS = 1_920
const POSTER_SIDE_PIXELS = 1_280

const threads = ['-threads', '2']
const firstVideo = ['-map', '0:V:0']
const nothingElse = ['-sn', '-dn', '-map_metadata', '-1', '-map_chapters', '-1']

/** Builds the input arguments, which force the demuxer and block all other files and protocols. */
function toInput({ path, demuxer }: Source): string[] {
  return [
    ...['-hide_banner', '-loglevel', 'error'],
    ...['-max_alloc', String(MAX_ALLOCATION_BYTES)],
    ...['-protocol_whitelist', 'file'],
    ...['-format_whitelist', demuxer],
    ...['-f', demuxer],
    ...threads,
    ...['-i', `file:${path}`],
  ]
}

export function toProbeArguments(source: Source): string[] {
  return [...toInput(source), '-show_entries', probeEntries, '-of', 'json']
}

const progress = ['-progress', 'pipe:1', '-nostats']

export function toMeasureArguments(source: Source): string[] {
  return ['-nostdin', ...toInput(source), ...firstVideo, '-c', 'copy', ...progress, '-f', 'null', '-']
}

export function toConversionArguments(
  source: Source,
  { isVideoFit, audio }: Pick<Media, 'isVideoFit' | 'audio'>,
  output: { path: string; maxBytes: number },
): string[] {
  const isAudioFit = audio?.isFit ?? true
  const channels = (audio?.channels ?? 2) < 2 ? '1' : '2'
  return [
    '-nostdin',
    ...toInput(source),
    ...[...firstVideo, '-map', '0:a:0?', ...nothingElse],
    ...(isVideoFit ? ['-c:v', 'copy'] : toVideoEncoding()),
    ...(isAudioFit ? ['-c:a', 'copy'] : ['-c:a', 'aac', '-b:a', '128k', '-ac', channels]),
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

export function toPosterArguments(source: Source, atSeconds: number, path: string): string[] {
  return [
    '-nostdin',
    ...['-ss', atSeconds.toFixed(3)],
    ...toInput(source),
    ...[...firstVideo, '-an', ...nothingElse],
    ...['-frames:v', '1', '-filter_threads', '1', '-vf', toScale(POSTER_SIDE_PIXELS)],
    ...['-c:v', 'mjpeg', '-pix_fmt', 'yuvj420p', '-q:v', '4', ...threads],
    // The image2 format would interpret patterns in the file name.
    ...['-f', 'mjpeg', '-y', `file:${path}`],
  ]
}

/** Scales the video down to fit a square. Both sides are even, as H.264 requires. */
function toScale(sidePixels: number): string {
  const side = (name: string) => `'min(${sidePixels},${name})'`
  return `scale=${side('iw')}:${side('ih')}:force_original_aspect_ratio=decrease:force_divisible_by=2`
}
