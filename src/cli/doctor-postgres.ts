/** The checks of `parley doctor` that look at a PostgreSQL database; none of them makes or changes anything. */
import type { Config } from '../config.ts'
import { examinePostgres } from '../db/open-postgres.ts'
import { StartupError } from '../startup-error.ts'
import { checkSecret } from './doctor-secret.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

/** The database, whether it is reached in the open, and the secret that its agent keys are sealed with. */
export async function checkPostgres(config: Config, databaseUrl: string): Promise<Finding[]> {
  const check = 'database'
  try {
    const { db, version, isEncrypted, pending, target, close } = await examinePostgres(databaseUrl)
    try {
      const found = `PostgreSQL ${version}, ${target.database} at ${target.server}`
      const isNear = /^(127\.|\[::1\]|localhost:|\/)/.test(target.server)
      const connection =
        isEncrypted || isNear
          ? []
          : [
              warn(
                'connection',
                `${target.server} is reached unencrypted; add ?sslmode=verify-full to DATABASE_URL`,
              ),
            ]
      if (pending.length > 0) {
        const message = `${found}; the next start brings it up to date (${pending.join(', ')})`
        return [warn(check, message), ...connection, await checkSecret(config, undefined)]
      }
      return [ok(check, `${found}, up to date`), ...connection, await checkSecret(config, db)]
    } finally {
      await close()
    }
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return [fail(check, error.message)]
  }
}
