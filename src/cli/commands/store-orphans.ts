/** The `store orphans` command: counts stored files without a row, and deletes them with `--delete`. */
import { listArtifactPlaces, namedBlobs } from '../../artifacts/maintenance.ts'
import { openBucketStores } from '../../backup/copy-to-bucket.ts'
import type { Config } from '../../config/config.ts'
import type { Database } from '../../db/database.ts'
import { listFilePlaces } from '../../files/files.ts'
import { systemClock } from '../../lib/clock.ts'
import { StartupError } from '../../lib/errors.ts'
import type { ResumableStore } from '../../storage/blobs.ts'
import { openResumableStore } from '../../storage/local.ts'
import { findUnmarkedFolders, type StoreName } from '../../storage/mark.ts'
import { abandonedBefore } from '../../storage/open.ts'
import { countOrphans, deleteAllOrphans, type OrphanReport, orphanCutoff } from '../../storage/sweeper.ts'
import { createLog } from '../../telemetry/log.ts'
import { withDatabase } from '../installation.ts'
import { printNotice, printResult, renderTable } from '../output.ts'

interface OrphansOptions {
  readonly delete?: boolean
  readonly json?: boolean
}

/** Deletes what the sweeper does not delete without confirmation (ADR 0040). */
export async function storeOrphans({ delete: isDeleting = false, json }: OrphansOptions): Promise<void> {
  await withDatabase(async (db, config) => {
    await findUnmarkedFolders(config, db, namedBlobs)
    const stores = await openStores(db, config)
    try {
      const places = {
        files: listFilePlaces(db, stores.files.blobs),
        artifacts: listArtifactPlaces(db, stores.artifacts),
      }
      const storedBeforeMs = orphanCutoff(systemClock)
      const look = async (name: StoreName): Promise<OrphanReport> =>
        isDeleting
          ? deleteAllOrphans(places[name], storedBeforeMs)
          : { ...(await countOrphans(places[name], storedBeforeMs)), deleted: 0 }
      const reports = { files: await look('files'), artifacts: await look('artifacts') }
      printResult(json === true, reports, renderReports(reports))
      const isAnyLeft = Object.values(reports).some(({ orphans, deleted }) => orphans > deleted)
      if (isAnyLeft) printNotice('Nothing was deleted; add --delete to delete the orphans for good.')
    } finally {
      await Promise.all(Object.values(stores).map(({ blobs }) => blobs.close()))
    }
  })
}

/** Opens the stores as a second process, so that unfinished uploads of a running server are not touched. */
async function openStores(db: Database, config: Config): Promise<Record<StoreName, ResumableStore>> {
  const deps = { db, clock: systemClock, log: createLog(config), isOnlyServer: false }
  if (config.s3 !== undefined) return openBucketStores({ ...deps, config })
  if (config.dataDir === ':memory:')
    throw new StartupError('PARLEY_DATA_DIR=:memory: stores no files; set it to a directory.')
  const open = (name: StoreName) =>
    openResumableStore(config.dataDir, name, config.uploads.isSynced, abandonedBefore(deps))
  return { files: await open('files'), artifacts: await open('artifacts') }
}

function renderReports(reports: Readonly<Record<StoreName, OrphanReport>>): string {
  const rows = Object.entries(reports).map(([name, { objects, orphans, deleted }]) =>
    [name, objects, orphans, deleted].map(String),
  )
  return renderTable(['STORE', 'OBJECTS', 'ORPHANS', 'DELETED'], rows)
}
