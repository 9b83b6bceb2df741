/** Converts a video to an H.264 and AAC MP4 file with the index at the front, and extracts a poster. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type Source,
  toConversionArguments,
  toMeasureArguments,
  toPosterArguments,
  toProbeArguments,
} from './ffmpeg.ts'
import { diskFull, isDiskFull, type Job, type MadeFile, type Outcome, unconvertible } from './job.ts'
import { type Media, parseProbe, sniffVideo } from './media.ts'
import type { SandboxedResult, SandboxedRun, Tool } from './sandbox.ts'

export const NO_FFMPEG = 'This server has no ffmpeg or ffprobe, so it serves videos as uploaded.'

const MIB = 1024 ** 2
/** Larger frames would exceed the memory limit of a conversion. */
const MAX_PIXELS = 50e6
/**
 * A conversion fails if the result is shorter by more than this fraction of the duration plus `LOST_SECONDS`.
 */
const LOST_SHARE = 0.1
const LOST_SECONDS = 1

/**
 * Copies video and audio streams that browsers can already play, and re-encodes others.
 * @throws ConversionRejection `unconvertible`
 */
export async function convertVideo(job: Job): Promise<Outcome> {
  const { ffmpeg, ffprobe } = job.programs
  if (ffmpeg === undefined || ffprobe === undefined)
    return { unchanged: { mediaType: 'application/octet-stream', reason: NO_FFMPEG } }
  const demuxer = await sniffVideo(job.source)
  if (demuxer === undefined) throw unconvertible('The file is not a video in a supported format.')
  const tools = { ffmpeg: toTool(ffmpeg), ffprobe: toTool(ffprobe) }
  const work: VideoJob = { ...job, ...tools, video: { path: job.source, demuxer } }
  const media = await probe(work)
  const durationSeconds = media.durationSeconds ?? (await measure(work))
  const stop = new AbortController()
  const poster = makePoster({ ...work, signal: AbortSignal.any([job.signal, stop.signal]) }, durationSeconds)
  // Prevents an unhandled rejection if the poster fails before it is awaited.
  const posterEnd = poster.catch(() => {})
  try {
    const made = await makeVideo(work, media, durationSeconds)
    return { made, ...(await poster) }
  } finally {
    stop.abort()
    await posterEnd
  }
}

interface VideoJob extends Job {
  readonly video: Source
  readonly ffmpeg: Tool
  readonly ffprobe: Tool
}

export function toTool(program: string): Tool {
  return { program, reads: [], check: ['-version'], reservedBytes: 0 }
}

function run(
  job: VideoJob,
  tool: Tool,
  args: readonly string[],
  extra: Partial<Pick<SandboxedRun, 'outputBytes' | 'onLine' | 'isLowPriority'>> = {},
): Promise<SandboxedResult> {
  const { source, folder, signal } = job
  return job.sandbox.run(tool, { args, source, folder, signal, outputBytes: 16 * MIB, ...extra })
}

async function probe(job: VideoJob): Promise<Media> {
  const end = await run(job, job.ffprobe, toProbeArguments(job.video))
  if (end.code !== 0) throw toRejection(end, 'The video cannot be read: it is damaged or incomplete.')
  const media = parseProbe(end.stdout)
  if (media === undefined) throw unconvertible('The file contains no video.')
  const { widthPixels, heightPixels } = media
  if (widthPixels * heightPixels > MAX_PIXELS)
    throw unconvertible(`The video resolution is too high: ${widthPixels} x ${heightPixels}.`)
  return media
}

/** Returns the duration in seconds of a video whose header omits it, by reading the whole file. */
async function measure(job: VideoJob): Promise<number> {
  let seconds = 0
  const onLine = (line: string) => {
    seconds = parseSeconds(line) ?? seconds
  }
  await run(job, job.ffmpeg, toMeasureArguments(job.video), { onLine })
  return seconds
}

const VIDEO: MadeFile = { name: 'converted.mp4', mediaType: 'video/mp4' }

async function makeVideo(job: VideoJob, media: Media, durationSeconds: number): Promise<MadeFile> {
  const path = join(job.folder, VIDEO.name)
  // H.264 files are larger than those of newer codecs, but ordinary videos stay below this limit.
  const maxBytes = Math.max(4 * job.sizeBytes, 256 * MIB)
  let writtenSeconds = 0
  const onLine = (line: string) => {
    writtenSeconds = parseSeconds(line) ?? writtenSeconds
    if (durationSeconds > 0) job.onProgress(Math.min(writtenSeconds / durationSeconds, 0.99))
  }
  const write = (wanted: Media) => {
    const args = toConversionArguments(job.video, wanted, { path, maxBytes })
    const isLowPriority = !wanted.isVideoFit
    return run(job, job.ffmpeg, args, { outputBytes: maxBytes + 64 * MIB, isLowPriority, onLine })
  }
  let end = await write(media)
  // Some playable streams cannot be copied into an MP4 file.
  if (end.code !== 0 && media.isVideoFit) end = await write({ ...media, isVideoFit: false })
  if (end.code !== 0) throw toRejection(end, 'The video cannot be converted: it is damaged.')
  if ((await stat(path)).size >= maxBytes) throw unconvertible('The converted video would be too large.')
  assertWhole(writtenSeconds, durationSeconds)
  return VIDEO
}

/** Detects truncated files, for which ffmpeg converts the readable part and reports success. */
function assertWhole(writtenSeconds: number, durationSeconds: number): void {
  if (writtenSeconds >= durationSeconds * (1 - LOST_SHARE) - LOST_SECONDS) return
  const [readable, all] = [writtenSeconds.toFixed(1), durationSeconds.toFixed(1)]
  throw unconvertible(`Only ${readable} of the video's ${all} seconds can be read.`)
}

const POSTER: MadeFile = { name: 'poster.jpg', mediaType: 'image/jpeg' }
/** The position of the poster as a fraction of the duration. The first frames of a video are often black. */
const POSTER_SHARE = 0.1
const LATEST_POSTER_SECONDS = 3

/** Returns no poster if ffmpeg fails, because a video without a poster is still useful. */
async function makePoster(job: VideoJob, durationSeconds: number): Promise<{ poster?: MadeFile }> {
  const path = join(job.folder, POSTER.name)
  const atSeconds = Math.min(durationSeconds * POSTER_SHARE, LATEST_POSTER_SECONDS)
  const end = await run(job, job.ffmpeg, toPosterArguments(job.video, atSeconds, path))
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  )
  return end.code === 0 && size > 0 ? { poster: POSTER } : {}
}

function parseSeconds(line: string): number | undefined {
  const [, microseconds] = /^out_time_us=(\d+)$/.exec(line) ?? []
  return microseconds === undefined ? undefined : Number(microseconds) / 1e6
}

/**
 * Exit codes of a wrapper whose program was killed (137) or exceeded its CPU time (152) or file size (153).
 */
const limitCodes: readonly (number | null)[] = [137, 152, 153]

/**
 * Returns the error for a failed run. Its cause contains ffmpeg's output, which clients must not receive,
 * because it contains server paths.
 */
function toRejection({ code, killedBy, stderr }: SandboxedResult, reason: string): Error {
  const cause = new Error(`ffmpeg ended with ${killedBy ?? code}: ${stderr.trim()}`)
  if (isDiskFull(stderr)) return diskFull(cause)
  if (/Cannot allocate memory|malloc of size|failed to map segment/.test(stderr))
    return unconvertible('Converting the video exceeds the memory limit.', cause)
  if (killedBy !== null || limitCodes.includes(code))
    return unconvertible('Converting the video exceeds the CPU time or disk space limit.', cause)
  if (stderr.includes('Unknown encoder'))
    return unconvertible("This server's ffmpeg cannot encode H.264 with AAC.", cause)
  return unconvertible(reason, cause)
}
