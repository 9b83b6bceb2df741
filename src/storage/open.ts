/** Opens the stores of bytes where the settings say: in a bucket, in the data directory, or nowhere that lasts. */
import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { type Deps, unixSeconds } from '../deps.ts'
import { StartupError } from '../startup-error.ts'
import { type Blobs, isBlobName } from './blobs.ts'
import { createTemporaryBlobs, openLocalBlobs } from './local.ts'
import { findInstallationId, insertInstallation } from './store.ts'

/**
 * Opens the store of that name.
 * @throws StartupError when the folder or the bucket cannot be used, or is another's.
 */
export async function openBlobs(
  { dataDir, s3 }: Pick<Config, 'dataDir' | 's3'>,
  name: string,
  deps: Pick<Deps, 'db' | 'clock' | 'log'>,
): Promise<Blobs> {
  if (dataDir === ':memory:') return createTemporaryBlobs()
  const folder = join(dataDir, name)
  if (s3 === undefined) return openLocalBlobs(folder)
  // Loaded only where it is used.
  const { openS3Blobs } = await import('./s3.ts')
  const installationId = await getInstallationId(deps)
  const blobs = await openS3Blobs(s3, { name, installationId, ...deps })
  try {
    await assertNothingLeft(folder, s3.bucket, `${s3.prefix}${name}/`)
    return blobs
  } catch (error) {
    await blobs.close()
    throw error
  }
}

async function getInstallationId({ db, clock }: Pick<Deps, 'db' | 'clock'>): Promise<string> {
  await insertInstallation(db, randomUUID(), unixSeconds(clock))
  return (await findInstallationId(db)) as string
}

/** What was kept in the folder before there was a bucket would not be found any more. */
async function assertNothingLeft(folder: string, bucket: string, prefix: string): Promise<void> {
  const names = await readdir(folder).catch((error) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  if (!names.some(isBlobName)) return
  throw new StartupError(
    `The folder ${folder} holds files from before S3_BUCKET was set; copy them to ${prefix} in the bucket ${bucket} under their names, then move the folder away, or unset S3_BUCKET.`,
  )
}
