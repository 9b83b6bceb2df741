/** Opens the installation's database for one command, beside a running server or without one. */

import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/parse.ts'
import type { Database } from '../db/database.ts'
import { openDatabase, openOrCreateDatabase } from '../db/open.ts'
import { StartupError } from '../lib/errors.ts'
import { printNotice } from './output.ts'

/**
 * Works on the database of the data directory. With `create` the command may be the first to use it; whoever looks for something
 * where there is nothing has the wrong directory.
 * @throws StartupError
 */
export async function withDatabase(
  run: (db: Database, config: Config) => Promise<void>,
  ifNone?: 'create',
): Promise<void> {
  const config = await readSettings()
  if (config.dataDir === ':memory:' && config.databaseUrl === undefined) {
    throw new StartupError('PARLEY_DATA_DIR is :memory:, and no command sees what is in a server’s memory.')
  }
  const opening =
    ifNone === 'create' ? openOrCreateDatabase(config) : openDatabase({ ...config, role: 'command' })
  const { db, close } = await opening
  try {
    await run(db, config)
  } finally {
    await close()
  }
}

/**
 * The configuration; what its operator should know of it is told on standard error.
 * @throws ConfigError
 */
export async function readSettings(): Promise<Config> {
  const { config, warnings } = await loadConfig()
  for (const warning of warnings) printNotice(`warning: ${warning}`)
  return config
}
