/** The `migrate` command: brings the database to this version's schema without serving. */
import { openOrCreateDatabase } from '../../db/open.ts'
import { readSettings } from '../database.ts'
import { printResult } from '../output.ts'

/** Beside a running server on SQLite there is nothing to do, or that server is another version's and has to stop first. */
export async function migrate(isJson: boolean): Promise<void> {
  const config = await readSettings()
  const { dataDir, databaseUrl } = config
  await (await openOrCreateDatabase(config)).close()
  const what = databaseUrl === undefined ? dataDir : 'the database in DATABASE_URL'
  printResult(isJson, { data_dir: dataDir, up_to_date: true }, `${what} is up to date`)
}
