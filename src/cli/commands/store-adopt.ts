/** The `store adopt` command: marks the stored files as belonging to the configured database. */
import { getInstallationId } from '../../db/installation.ts'
import { systemClock } from '../../lib/clock.ts'
import { StartupError } from '../../lib/errors.ts'
import { adoptFolders } from '../../storage/mark.ts'
import { withDatabase } from '../installation.ts'
import { printResult } from '../output.ts'

const ADOPT_WITHIN_MS = 30_000

/** Overrides the check at start that rejects the folder or bucket of another installation (ADR 0040). */
export async function storeAdopt(isJson: boolean): Promise<void> {
  await withDatabase(async (db, { dataDir, s3 }) => {
    if (s3 === undefined && dataDir === ':memory:')
      throw new StartupError('PARLEY_DATA_DIR=:memory: stores no files; set it to a directory.')
    const id = await getInstallationId({ db, clock: systemClock })
    const former =
      s3 === undefined
        ? await adoptFolders(dataDir, id)
        : await (await import('../../storage/probe-s3.ts')).adoptPlaces(
            s3,
            id,
            AbortSignal.timeout(ADOPT_WITHIN_MS),
          )
    const where = s3 === undefined ? dataDir : `the bucket ${s3.bucket}`
    const lines = Object.entries(former).map(([name, mark]) =>
      mark === id
        ? `${name} in ${where} belongs to this database already`
        : `${name} in ${where} belongs to this database now (${id}); before: ${mark ?? 'no mark'}`,
    )
    printResult(isJson, { installation: id, former }, lines.join('\n'))
  })
}
