/**
 * Converts uploaded videos, pictures and captions for browsers, and checks projects. The caller manages
 * artifacts and retries.
 */
import { mkdir, rename, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Config } from '../config/config.ts'
import type { Clock } from '../lib/clock.ts'
import { type ConversionKind, type Job, type MadeFile, type Outcome, unconvertible } from './job.ts'
import { isPicture } from './media.ts'
import { findPrograms } from './programs.ts'
import { createSandbox, type Tool } from './sandbox.ts'
import { convertVideo, toTool } from './video.ts'
import { createWorkerTool, runWorker } from './worker-run.ts'

export interface ConversionRequest {
  readonly kind: ConversionKind
  readonly source: string
  /** An existing folder for this conversion only, which receives the results. */
  readonly workFolder: string
  /** Aborting stops all processes, cleans up and rejects with the signal's reason. */
  readonly signal: AbortSignal
  /** Receives the progress from 0 to 1, which never decreases. Only videos report progress. */
  readonly onProgress: (share: number) => void
}

export interface ConvertedFile {
  readonly path: string
  readonly mediaType: string
}

export interface Converted {
  readonly result: 'converted' | 'original'
  readonly file: ConvertedFile
  readonly poster?: ConvertedFile
  /** Why the original is served unchecked and only as an attachment; undefined if it passed the check. */
  readonly reason?: string
}

export type Converter = Awaited<ReturnType<typeof createConverter>>

/**
 * Shorter time limits for kinds with small files, so that they do not delay other conversions. The limits
 * include process startup.
 */
const maxMs: Readonly<Partial<Record<ConversionKind, number>>> = { thumbnail: 30_000, captions: 60_000 }

type Tools = Pick<Job, 'programs' | 'sandbox'> & { readonly worker: Tool }

export async function createConverter({
  config,
  clock,
}: {
  readonly config: Pick<Config, 'conversion'>
  readonly clock: Pick<Clock, 'wait'>
}) {
  const { searchPath, ...limits } = config.conversion
  const programs = await findPrograms(searchPath)
  const tools: Tools = { programs, sandbox: createSandbox(programs, limits), worker: createWorkerTool() }
  return {
    programs,
    async isIsolated(): Promise<boolean> {
      const used = [tools.worker, ...(programs.ffmpeg === undefined ? [] : [toTool(programs.ffmpeg)])]
      return (await Promise.all(used.map(tools.sandbox.isIsolated))).every(Boolean)
    },
    /**
     * Converts a file and leaves only the results in the work folder.
     * @throws ConversionRejection if the file is at fault; ServiceError `storage_full`.
     */
    convert: (request: ConversionRequest): Promise<Converted> =>
      withinTime(
        clock,
        Math.min(limits.wallMs, maxMs[request.kind] ?? limits.wallMs),
        request.signal,
        (signal) => convert(tools, { ...request, signal }),
      ),
  }
}

async function withinTime<T>(
  clock: Pick<Clock, 'wait'>,
  wallMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const [late, finished] = [new AbortController(), new AbortController()]
  const rejection = unconvertible(`The conversion took longer than ${wallMs / 1000} seconds.`)
  clock.wait(wallMs, finished.signal).then(
    () => late.abort(rejection),
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
    const { worker, ...sandboxed } = tools
    const files = { source: path, sizeBytes: size, folder }
    const job: Job = { ...sandboxed, ...files, signal, onProgress: increasing(onProgress) }
    const outcome = await perform(kind, job, worker)
    signal.throwIfAborted()
    return await moveResults(outcome, job, workFolder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function perform(kind: ConversionKind, job: Job, worker: Tool): Promise<Outcome> {
  if (kind === 'video') return convertVideo(job)
  if (kind === 'thumbnail' && !(await isPicture(job.source)))
    throw unconvertible('The file is not a JPEG, PNG or WebP picture.')
  return runWorker(job, kind, worker)
}

async function moveResults(
  outcome: Outcome,
  { source, folder }: Job,
  workFolder: string,
): Promise<Converted> {
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

function increasing(onProgress: (share: number) => void): (share: number) => void {
  let last = 0
  return (share) => {
    if (share <= last) return
    last = share
    onProgress(share)
  }
}
