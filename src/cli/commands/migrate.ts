/** The `migrate` command migrates the database to this version's schema without starting a server. */
import { openOrCreateDatabase } from '../../db/open.ts'
import { readConfig } from '../installation.ts'
import { printResult } from '../output.ts'

export async function migrate(isJson: boolean): Promise<void> {
  const config = await readConfig()
  const { dataDir, databaseUrl } = config
  await (await openOrCreateDatabase(config)).close()
  const what = databaseUrl === undefined ? dataDir : 'the database in DATABASE_URL'
  printResult(isJson, { data_dir: dataDir, up_to_date: true }, `${what} is up to date`)
}
