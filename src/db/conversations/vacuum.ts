/** Frees the space of deleted conversations in PostgreSQL. */
import { Client } from 'pg'
import { toClientConfig } from '../postgres.ts'
import { conversationTableNames } from './tables.ts'

/**
 * The timeout is long because a table can be large; it also ends the statement if this process disconnects.
 */
const settings = { statement_timeout: '30min', lock_timeout: '30s', synchronous_commit: 'off' }

/**
 * Runs `VACUUM` on each conversation table that was not vacuumed within the last hour. Without `hasDeleted`,
 * skips tables without dead rows. Uses a separate connection, because pooled connections have short timeouts.
 * Stops waiting when the signal aborts.
 */
export async function vacuumConversations(
  databaseUrl: string,
  hasDeleted: boolean,
  signal?: AbortSignal,
): Promise<void> {
  if (signal?.aborted) return
  const client = new Client(toClientConfig(databaseUrl, settings))
  // Without a listener, a lost connection would end the process; the query reports the failure.
  client.on('error', () => {})
  const stop = () => void client.end().catch(() => {})
  await client.connect()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    const { rows } = await client.query<{ relname: string }>(
      `select relname from pg_stat_user_tables
       where schemaname = current_schema() and relname = any($1) and ($2 or n_dead_tup > 0)
         and (last_vacuum is null or last_vacuum < now() - interval '1 hour')`,
      [conversationTableNames, hasDeleted],
    )
    for (const { relname } of rows) await client.query(`vacuum ${client.escapeIdentifier(relname)}`)
  } catch (error) {
    if (!signal?.aborted) throw error
  } finally {
    signal?.removeEventListener('abort', stop)
    await client.end().catch(() => {})
  }
}
