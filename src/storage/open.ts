/** Opens the configured blob stores: a bucket, the data directory or a temporary folder. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config, S3Config } from '../config/config.ts'
import { getInstallationId } from '../db/installation.ts'
import { StartupError } from '../lib/errors.ts'
import { type Blobs, isBlobName, type ResumableStore } from './blobs.ts'
import type { Dependencies } from './dependencies.ts'
import { ignoreMissing } from './folder.ts'
import { openResumableStore } from './local.ts'

/** Age in milliseconds after which a file is abandoned; longer than any request or conversion. */
const ABANDONED_AFTER_MS = 2 * 86_400_000

export interface StoreDeps extends Pick<Dependencies, 'db' | 'clock' | 'log'> {
  readonly isOnlyServer: boolean
}

/** @throws StartupError if the folder or bucket is not usable or belongs to another installation. */
export async function openBlobs(
  { dataDir, s3 }: Pick<Config, 'dataDir' | 's3'>,
  name: string,
  deps: StoreDeps,
): Promise<Blobs> {
  if (s3 === undefined) return (await openResumableStore(dataDir, name, true, abandonedBefore(deps))).blobs
  await assertNothingLeft(dataDir, name, s3)
  const { openS3Blobs } = await import('./s3.ts')
  return openS3Blobs(s3, { name, installationId: await getInstallationId(deps), ...deps })
}

/** @throws StartupError in the same cases as `openBlobs`. */
export async function openUploadStore(
  { dataDir, s3, uploads, limits }: Pick<Config, 'dataDir' | 's3' | 'uploads' | 'limits'>,
  name: string,
  deps: StoreDeps,
): Promise<ResumableStore> {
  if (s3 === undefined) return openResumableStore(dataDir, name, uploads.isSynced, abandonedBefore(deps))
  await assertNothingLeft(dataDir, name, s3)
  const { openS3ResumableStore } = await import('./s3.ts')
  const installationId = await getInstallationId(deps)
  return openS3ResumableStore(s3, { name, installationId, maxBytes: limits.maxUploadBytes, ...deps })
}

/**
 * Files last modified before the returned time (Unix milliseconds) are abandoned. Returns undefined for an
 * installation's only server, for which all unfinished files are abandoned.
 */
export function abandonedBefore({ isOnlyServer, clock }: StoreDeps): number | undefined {
  return isOnlyServer ? undefined : clock.now() - ABANDONED_AFTER_MS
}

/**
 * Rejects files in the data directory, because a server that uses a bucket would not find them. @throws
 * StartupError
 */
export async function assertNothingLeft(
  dataDir: string,
  name: string,
  { bucket, prefix }: S3Config,
): Promise<void> {
  const folder = join(dataDir, name)
  const names = await readdir(folder).catch(ignoreMissing)
  if (!names?.some(isBlobName)) return
  throw new StartupError(
    `The folder ${folder} contains files from before S3_BUCKET was set. Copy them under the same names to ${prefix}${name}/ in the bucket ${bucket} and move the folder elsewhere, or unset S3_BUCKET.`,
  )
}
