/** The checks of `parley doctor` that look at the stored bytes; what they write into a bucket they delete again. */
import type { Config } from '../config.ts'
import { openDatabase } from '../db/open.ts'
import { StartupError } from '../startup-error.ts'
import { findUnmarkedFolders } from '../storage/mark.ts'
import { assertNothingLeft } from '../storage/open.ts'
import { findInstallation } from '../storage/store.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

type BucketConfig = Pick<Config, 's3' | 'dataDir' | 'databaseUrl'>

/** Nothing where there is no bucket. */
export async function checkBucket(config: BucketConfig): Promise<Finding[]> {
  const { s3, dataDir } = config
  if (s3 === undefined) return []
  const check = 'bucket'
  const where = `${s3.bucket} at ${s3.endpoint ?? `AWS (${s3.region})`}`
  try {
    const { examineS3 } = await import('../storage/s3/examine.ts')
    const installationId = await findInstallationId(config)
    let canListUnfinished = true
    for (const store of ['files', 'artifacts']) {
      await assertNothingLeft(dataDir, store, s3)
      canListUnfinished = (await examineS3(s3, store, installationId)) && canListUnfinished
    }
    if (canListUnfinished) return [ok(check, `${where} can be read and written`)]
    const message = `${where} can be read and written, but unfinished uploads cannot be listed; have the bucket abort them after a day, or allow s3:ListBucketMultipartUploads`
    return [warn(check, message)]
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return [fail(check, error.message)]
  }
}

/** Whether the folders belong to this database. Nothing where there is a bucket, or no database that can be used. */
export async function checkFolders(config: BucketConfig): Promise<Finding[]> {
  if (config.s3 !== undefined || config.dataDir === ':memory:') return []
  const opened = await openDatabase({ ...config, role: 'command' }).catch(() => undefined)
  if (opened === undefined) return []
  const check = 'stored files'
  try {
    await findUnmarkedFolders(config, opened.db)
    return [ok(check, 'they belong to this database')]
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return [fail(check, error.message)]
  } finally {
    await opened.close()
  }
}

/** Undefined before the first start, and where the database cannot be used, of which another check tells. */
async function findInstallationId(config: BucketConfig): Promise<string | undefined> {
  const opened = await openDatabase({ ...config, role: 'command' }).catch(() => undefined)
  try {
    return opened && (await findInstallation(opened.db))?.id
  } finally {
    await opened?.close()
  }
}
