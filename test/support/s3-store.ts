/** Opens blob stores on the scripted S3 server, and reads and writes blobs. */
import { randomBytes } from 'node:crypto'
import type { Readable } from 'node:stream'
import { type Logger, pino } from 'pino'
import { onTestFinished } from 'vitest'
import type { S3Config } from '../../src/config/config.ts'
import type { ByteRange } from '../../src/http/ranges.ts'
import type { Clock } from '../../src/lib/clock.ts'
import type { BlobEntry, Blobs, ResumableStore } from '../../src/storage/blobs.ts'
import type { BucketTimings } from '../../src/storage/s3/client.ts'
import { openS3Blobs, openS3ResumableStore, type S3BlobsOptions } from '../../src/storage/s3.ts'
import { createFakeClock } from './fake-clock.ts'
import type { S3Server } from './s3-server.ts'

export const MIB = 1024 ** 2

/** Timeouts short enough for a test to wait for them. */
export const shortTimeouts = { connectMs: 1_000, idleMs: 300 }
/** Timeouts long enough for a busy machine. */
const longTimings = { connectMs: 10_000, idleMs: 10_000 }

export interface StoreOptions {
  readonly config?: Partial<S3Config>
  readonly installationId?: string
  readonly clock?: Clock
  readonly log?: Logger
  readonly timings?: BucketTimings
  /** True (default) if no other server of the installation can be running. */
  readonly isOnlyServer?: boolean
  /** The maximum size of a resumable blob, in bytes. */
  readonly maxBytes?: number
}

/** Opens a `files` store and closes it when the test ends. */
export async function openStore(server: S3Server, options: StoreOptions = {}): Promise<Blobs> {
  const [config, rest] = toArguments(server, 'files', options)
  const blobs = await openS3Blobs(config, { ...rest, isOnlyServer: options.isOnlyServer ?? true })
  onTestFinished(() => blobs.close())
  return blobs
}

/** Opens a resumable `artifacts` store and closes it when the test ends. */
export async function openResumable(server: S3Server, options: StoreOptions = {}): Promise<ResumableStore> {
  const [config, rest] = toArguments(server, 'artifacts', options)
  const store = await openS3ResumableStore(config, { ...rest, maxBytes: options.maxBytes ?? 5 * 1024 * MIB })
  onTestFinished(() => store.blobs.close())
  return store
}

function toArguments(
  server: S3Server,
  name: string,
  options: StoreOptions,
): [config: S3Config, options: S3BlobsOptions] {
  const {
    config,
    installationId = 'ours',
    clock = createFakeClock(),
    log = pino({ level: 'silent' }),
    timings = longTimings,
  } = options
  return [
    { ...server.config, ...config },
    { name, installationId, clock, log, timings },
  ]
}

export async function* chunksOf(bytes: Buffer, pieceBytes = 64 * 1024): AsyncIterable<Uint8Array> {
  for (let start = 0; start < bytes.length; start += pieceBytes)
    yield bytes.subarray(start, start + pieceBytes)
}

export async function storeRandomBlob(
  blobs: Blobs,
  sizeBytes: number,
): Promise<{ name: string; bytes: Buffer }> {
  const bytes = randomBytes(sizeBytes)
  const blob = await blobs.stage(chunksOf(bytes))
  await blob.commit()
  return { name: blob.name, bytes }
}

export async function readBlob(blobs: Blobs, name: string, range?: ByteRange): Promise<Buffer> {
  const stream: Readable = await blobs.open(name, range)
  return Buffer.concat(await stream.toArray())
}

export async function listEntries(blobs: Blobs): Promise<BlobEntry[]> {
  const entries: BlobEntry[] = []
  for await (const entry of blobs.list()) entries.push(entry)
  return entries
}

export async function listNames(blobs: Blobs): Promise<string[]> {
  return (await listEntries(blobs)).map(({ name }) => name)
}
