/** Runs conversion jobs; afterwards, the artifact is ready and serves the converted file or the original. */
import { createReadStream, createWriteStream } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Converted, ConvertedFile } from '../../conversion/conversion.ts'
import { ConversionRejection } from '../../conversion/job.ts'
import { unixSeconds } from '../../lib/clock.ts'
import { type Blobs, HEAD_BYTES, sniff, wholeOf } from '../../storage/blobs.ts'
import { assertSpace, INCOMING, makeFolder, rethrow, type StoreFolder } from '../../storage/folder.ts'
import type { Dependencies } from '../dependencies.ts'
import { convertArtifact, findUploadRow, raiseProgress, type UploadRow, updateUpload } from '../store.ts'
import { digestFile } from './digest.ts'
import { type EventDeps, finish, queueEvent, reject } from './finish.ts'
import { backOffSeconds, type Work } from './queue.ts'
import { deleteJob, type JobRow, returnJob } from './store.ts'

/**
 * Number of server failures, spread over about three hours, after which the original is served unconverted.
 */
const MAX_FAILURES = 30
const GAVE_UP = 'The server could not convert this file, so it serves the file as uploaded.'

export interface ConversionDeps extends EventDeps, Pick<Dependencies, 'config' | 'random' | 'converter'> {
  /** Folder for temporary conversion files; emptied at startup. */
  readonly workFolder: StoreFolder
}

interface Conversion {
  readonly job: JobRow
  row: UploadRow
  readonly folder: string
  readonly signal: AbortSignal
}

export function createConversionWork(deps: ConversionDeps): Work {
  return async (job, signal) => {
    const row = await findUploadRow(deps.db, job)
    if (row === undefined) return void (await deleteJob(deps.db, job))
    const folder = await makeWorkFolder(deps.workFolder, job)
    const conversion = { job, row, folder, signal }
    try {
      await commitResult(deps, conversion, await convert(deps, conversion))
    } catch (error) {
      if (signal.aborted) throw error
      await handleFailure(deps, conversion, error)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
}

/** Creates a folder for this attempt and deletes those of the job's earlier attempts. */
async function makeWorkFolder({ root }: StoreFolder, { blob, fence }: JobRow): Promise<string> {
  const incoming = join(await root(), INCOMING)
  const former = (await readdir(incoming)).filter((name) => name.startsWith(blob))
  for (const name of former) await rm(join(incoming, name), { recursive: true, force: true })
  const folder = join(incoming, `${blob}-${fence}`)
  await makeFolder(folder)
  return folder
}

async function convert(deps: ConversionDeps, conversion: Conversion): Promise<Converted> {
  const { row, folder: workFolder, signal } = conversion
  const progress = createProgressWriter(deps, row)
  const source = await findSource(deps, conversion)
  if (row.sha256 === null) {
    const sha256 = await digestFile(source, signal)
    await updateUpload(deps.db, row, { sha256 })
    conversion.row = { ...row, sha256 }
  }
  // Attachments are ready when their bytes are complete, and have no conversion jobs.
  if (row.kind === 'attachment') throw new Error('an attachment has a conversion job')
  try {
    const onProgress = progress.report
    return await deps.converter.convert({ kind: row.kind, source, workFolder, signal, onProgress })
  } finally {
    await progress.settle()
  }
}

async function findSource(deps: ConversionDeps, { row, folder, signal }: Conversion): Promise<string> {
  const { blobs } = deps.store
  if (blobs.findPath !== undefined) return blobs.findPath(row.blob)
  const path = join(folder, 'upload')
  assertSpace(await deps.workFolder.readSpace(folder), row.received_bytes)
  const bytes = await blobs.open(row.blob, wholeOf(row.received_bytes))
  await pipeline(bytes, createWriteStream(path, { mode: 0o600 }), { signal }).catch(rethrow)
  return path
}

async function commitResult(deps: ConversionDeps, conversion: Conversion, result: Converted): Promise<void> {
  const { file, poster } = result
  if (result.result === 'original') return serveOriginal(deps, conversion, result)
  const { row, signal } = conversion
  const { blobs } = deps.store
  await using uncommitted = new AsyncDisposableStack()
  const stage = async ({ path }: ConvertedFile) => {
    const { size } = await stat(path)
    // Prevents a crash if the signal aborts before the store reads the stream. The store reports later
    // errors.
    const bytes = createReadStream(path, { signal }).on('error', () => {})
    const staged = await blobs.stage(bytes, size)
    return uncommitted.adopt(staged, () => staged.abort())
  }
  const made = await stage(file)
  const still = poster && (await stage(poster))
  await made.commit()
  await still?.commit()
  const values = {
    served_blob: made.name,
    served_bytes: made.sizeBytes,
    media_type: file.mediaType,
    sniffed_type: await sniff(made.head),
    poster_blob: still?.name ?? null,
    poster_bytes: still?.sizeBytes ?? null,
    kept_bytes: row.received_bytes + made.sizeBytes + (still?.sizeBytes ?? 0),
    conversion_result: 'converted',
  } as const
  if (await recordResult(deps, conversion, values)) return
  for (const blob of [made, still]) if (blob !== undefined) await blobs.delete(blob.name)
}

/**
 * Marks the artifact as ready and serves the original. Uses the media type that the check found, or else
 * detects it from the content.
 */
async function serveOriginal(
  deps: ConversionDeps,
  conversion: Conversion,
  { file, reason }: { readonly file?: ConvertedFile; readonly reason?: string },
): Promise<void> {
  const { row } = conversion
  const isGood = file !== undefined && reason === undefined
  const mediaType = isGood ? file.mediaType : await sniff(await readHead(deps.store.blobs, row))
  const values = {
    served_blob: row.blob,
    served_bytes: row.received_bytes,
    media_type: mediaType,
    sniffed_type: mediaType,
    conversion_result: 'original',
    conversion_reason: reason ?? null,
  } as const
  await recordResult(deps, conversion, values)
}

type Result = Pick<UploadRow, 'served_blob' | 'served_bytes' | 'media_type' | 'sniffed_type'> & {
  readonly conversion_result: 'converted' | 'original'
  readonly conversion_reason?: string | null
}

/**
 * Marks the artifact as ready and queues its event. Returns false if the job was lost or the artifact was
 * deleted.
 */
async function recordResult(deps: ConversionDeps, conversion: Conversion, values: Result): Promise<boolean> {
  const { job, row } = conversion
  const { conversion_result: result, conversion_reason: reason = null } = values
  const { media_type: mediaType, served_bytes: servedBytes } = values
  const isDone = await finish(deps, job, row, async (trx) => {
    if (!(await convertArtifact(trx, row, values))) return false
    await queueEvent(deps, trx, row, { result, reason, mediaType, servedBytes })
    return true
  })
  deps.wakeEvents()
  return isDone
}

async function readHead(blobs: Blobs, { blob, received_bytes: sizeBytes }: UploadRow): Promise<Uint8Array> {
  if (sizeBytes === 0) return new Uint8Array()
  const head = await blobs.open(blob, { start: 0, end: Math.min(HEAD_BYTES, sizeBytes) - 1 })
  return Buffer.concat(await head.toArray())
}

/**
 * Deletes a dangerous upload. After other failures, retries a limited number of times, then serves the
 * original.
 */
async function handleFailure(deps: ConversionDeps, conversion: Conversion, error: unknown): Promise<void> {
  const { job, row } = conversion
  const { db, clock, random, config, log } = deps
  if (!(error instanceof ConversionRejection)) {
    if (job.failures + 1 < MAX_FAILURES) throw error
    log.error({ err: error, artifactId: row.id }, 'conversion keeps failing; serving the upload unconverted')
    return serveOriginal(deps, conversion, { reason: GAVE_UP })
  }
  const { verdict, message: reason } = error
  log.info({ artifactId: row.id, verdict, reason: error.message }, 'upload cannot be converted')
  if (verdict === 'dangerous') return reject(deps, job, row, reason)
  const refusals = job.refusals + 1
  if (refusals >= config.conversion.tries) return serveOriginal(deps, conversion, { reason })
  await returnJob(db, job, { refusals, next_at: unixSeconds(clock) + backOffSeconds(refusals, random) })
}

/** Minimum interval between two progress writes, in milliseconds; status streams report no more often. */
const WRITE_EVERY_MS = 250

/** Stores the conversion's progress (0 to 1), and skips updates that arrive too soon. */
function createProgressWriter({ db, clock, log, changes }: ConversionDeps, row: UploadRow) {
  let nextAtMs = clock.monotonic()
  let writing: Promise<void> | undefined

  async function write(share: number): Promise<void> {
    try {
      // A repeated attempt starts at 0, but the stored progress must never decrease.
      if (await raiseProgress(db, row, Math.floor(share * 1000))) changes.publish(row.id)
    } catch (error) {
      log.warn({ err: error, artifactId: row.id }, 'failed to record the conversion progress')
    }
    writing = undefined
  }

  return {
    report(share: number) {
      if (writing !== undefined || clock.monotonic() < nextAtMs) return
      nextAtMs = clock.monotonic() + WRITE_EVERY_MS
      writing = write(share)
    },
    async settle() {
      await writing
    },
  }
}
