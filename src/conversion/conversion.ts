/** Makes uploaded files fit for the web. It knows files only: what they belong to, and when to try again, is for the caller. */
import { mkdir, rename, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Config } from '../config/config.ts'
import type { Clock } from '../lib/clock.ts'
import { type ConversionKind, type Job, type MadeFile, type Outcome, unconvertible } from './job.ts'
import { isPicture } from './media.ts'
import { findPrograms, type Programs } from './programs.ts'
import { createSandbox, type Tool } from './sandbox.ts'
import { convertVideo, toTool } from './video.ts'
import { createWorkerTool, runWorker } from './worker-run.ts'

/** A file to convert. */
export interface ConversionRequest {
  readonly kind: ConversionKind
  /** The uploaded file; it is only read. */
  readonly source: string
  /** A folder that is there and that nobody else uses; results are left in it, and nothing else is. */
  readonly workFolder: string
  /** Aborted: everything stops and is cleaned up, and the conversion rejects with the signal's reason. */
  readonly signal: AbortSignal
  /** How much is done, 0 to 1, never less than before; only videos have anything to say on the way. */
  readonly onProgress: (share: number) => void
}

/** A file that can be served. */
export interface ConvertedFile {
  readonly path: string
  readonly mediaType: string
}

/** What is to be served. */
export interface Converted {
  /** `original`: the uploaded file is what is served. */
  readonly result: 'converted' | 'original'
  readonly file: ConvertedFile
  readonly poster?: ConvertedFile
  /** Why the file was left as it is; it must be handed out as an attachment then. Without it an original was found good. */
  readonly reason?: string
}

/** Converts files, within the limits of this service. */
export interface Converter {
  /** The programs of this machine, looked for when the converter was made. */
  readonly programs: Programs
  /** Whether whatever reads uploaded files does so without network and without the rest of the disk. */
  isIsolated(): Promise<boolean>
  /**
   * Converts one file. Nothing but results is left of it, however it ends.
   * @throws ConversionRejection when the content is at fault.
   * @throws ServiceError `storage_full`
   */
  convert(request: ConversionRequest): Promise<Converted>
}

interface ConverterDeps {
  readonly config: Pick<Config, 'conversion'>
  readonly clock: Pick<Clock, 'wait'>
}

interface Tools extends Pick<Job, 'programs' | 'sandbox'> {
  readonly worker: Tool
}

/** A converter with the programs that the search path of the settings leads to. */
export async function createConverter({ config, clock }: ConverterDeps): Promise<Converter> {
  const { searchPath, ...limits } = config.conversion
  const programs = await findPrograms(searchPath)
  const tools: Tools = { programs, sandbox: createSandbox(programs, limits), worker: createWorkerTool() }
  return {
    programs,
    async isIsolated() {
      const used = [tools.worker, ...(programs.ffmpeg === undefined ? [] : [toTool(programs.ffmpeg)])]
      return (await Promise.all(used.map(tools.sandbox.isIsolated))).every(Boolean)
    },
    convert: (request) =>
      withinTime(clock, limits.wallMs, request.signal, (signal) => convert(tools, { ...request, signal })),
  }
}

/** Does work that is told to stop when the caller says so or the time is over. */
async function withinTime<T>(
  clock: Pick<Clock, 'wait'>,
  wallMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const [late, finished] = [new AbortController(), new AbortController()]
  const refusal = unconvertible(`The conversion took longer than ${wallMs / 1000} seconds.`)
  clock.wait(wallMs, finished.signal).then(
    () => late.abort(refusal),
    () => {},
  )
  try {
    return await work(AbortSignal.any([signal, late.signal]))
  } finally {
    finished.abort()
  }
}

async function convert(
  tools: Tools,
  { kind, source, workFolder, signal, onProgress }: ConversionRequest,
): Promise<Converted> {
  signal.throwIfAborted()
  const path = resolve(source)
  const { size } = await stat(path)
  if (size === 0) throw unconvertible('The file is empty.')
  const folder = join(resolve(workFolder), 'unfinished')
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { mode: 0o700 })
  try {
    const { programs, sandbox } = tools
    const job: Job = {
      programs,
      sandbox,
      source: path,
      sizeBytes: size,
      folder,
      signal,
      onProgress: growing(onProgress),
    }
    const outcome = await perform(kind, job, tools.worker)
    signal.throwIfAborted()
    return await keep(outcome, job, workFolder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function perform(kind: ConversionKind, job: Job, worker: Tool): Promise<Outcome> {
  if (kind === 'video') return convertVideo(job)
  if (kind === 'thumbnail' && !(await isPicture(job.source)))
    throw unconvertible('This is no JPEG, PNG or WebP picture.')
  return runWorker(job, kind, worker)
}

/** Puts what was made where the caller finds it. */
async function keep(outcome: Outcome, { source, folder }: Job, workFolder: string): Promise<Converted> {
  if ('unchanged' in outcome) {
    const { mediaType, ...why } = outcome.unchanged
    return { result: 'original', file: { path: source, mediaType }, ...why }
  }
  const move = async ({ name, mediaType }: MadeFile) => {
    const path = join(resolve(workFolder), name)
    await rename(join(folder, name), path)
    return { path, mediaType }
  }
  const file = await move(outcome.made)
  if (outcome.poster === undefined) return { result: 'converted', file }
  return { result: 'converted', file, poster: await move(outcome.poster) }
}

/** Numbers that never fall. */
function growing(onProgress: (share: number) => void): (share: number) => void {
  let last = 0
  return (share) => {
    if (share <= last) return
    last = share
    onProgress(share)
  }
}
