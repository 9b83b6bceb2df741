/** What can go wrong with PostgreSQL, told apart, and without what must not be in a log. */
import { DatabaseError } from 'pg'

/** The code of a `DatabaseAway`, beside those of SQLite and PostgreSQL. */
export const DATABASE_AWAY = 'DATABASE_AWAY'

/** Nobody answers at the other end, or no connection was free in time. */
export class DatabaseAway extends Error {
  override readonly name = 'DatabaseAway'
  readonly code = DATABASE_AWAY
}

/** The server is about to go, or may not be written to after a change of roles: the connection is of no use any more. */
const endingCodes: ReadonlySet<string> = new Set(['57P01', '57P02', '57P03', '57P05', '25006', '25P03'])

/** Whether the server itself has said so, on a connection that can be used again. */
export function isFromServer(error: unknown): boolean {
  return error instanceof DatabaseError && !endingCodes.has(error.code ?? '')
}

/**
 * An error of a statement or of a connection, as the service and its log may have it. The server's own keep their code; `detail`,
 * which quotes rows, goes. Everything else but a mistake of ours is a database that is away.
 */
export function toDatabaseError(error: unknown): unknown {
  if (error instanceof DatabaseError) {
    for (const field of ['detail', 'where', 'internalQuery', 'hint'] as const) delete error[field]
    return error
  }
  if (!(error instanceof Error) || error instanceof TypeError) return error
  // Many of these hold the connection, settings and all.
  const { code } = error as NodeJS.ErrnoException
  const reason =
    code === undefined || error.message.includes(code) ? error.message : `${code} ${error.message}`
  return new DatabaseAway(reason.trim())
}
