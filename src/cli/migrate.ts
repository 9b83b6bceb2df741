/** The `migrate` command: brings the database to this version's schema without serving. */
import { loadConfig } from '../config.ts'
import { openDatabase } from '../db/open.ts'
import { printResult } from './output.ts'

export async function migrate(isJson: boolean): Promise<void> {
  const { config } = await loadConfig()
  const { close } = await openDatabase({ dataDir: config.dataDir, role: 'server' })
  await close()
  printResult(isJson, { dataDir: config.dataDir, upToDate: true }, `${config.dataDir} is up to date`)
}
