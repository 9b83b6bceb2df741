/** Reads and writes the `jobs` table, which stores the remaining work for complete uploads. */
import type { ExpressionBuilder, Selectable } from 'kysely'
import type { Database } from '../../db/database.ts'
import type { JobTable, Tables } from '../../db/tables.ts'

export type JobRow = Selectable<JobTable>
export type JobKind = JobRow['kind']

export type TakenJob = Pick<JobRow, 'kind' | 'blob' | 'fence'>

/** A `converted` job needs an event. */
export async function insertJob(
  trx: Database,
  kind: JobKind,
  blob: string,
  now: number,
  event: string | null = null,
): Promise<void> {
  await trx.insertInto('jobs').values({ kind, blob, next_at: now, event }).execute()
}

/**
 * Maximum time until a job is due. A job that is due later was scheduled before the clock was set back, so it
 * is treated as due now.
 */
const LONGEST_WAIT_SECONDS = 3_600

/** Leases the longest-waiting due job until `until` (Unix seconds), except jobs in `running`. */
export async function takeJob(
  db: Database,
  kind: JobKind,
  { now, until, running }: { readonly now: number; readonly until: number; readonly running: string[] },
): Promise<JobRow | undefined> {
  // Retries if another runner leases the chosen job first.
  for (;;) {
    const due = await waiting(db, kind, running)
      .select(['blob', 'fence', 'next_at', 'failures', 'is_taken'])
      .where((job) => job.or([job('next_at', '<=', now), job('next_at', '>', now + LONGEST_WAIT_SECONDS)]))
      .executeTakeFirst()
    if (due === undefined) return undefined
    // Records an expired lease as a failure, because the job may have crashed its runner.
    const failures = due.failures + due.is_taken
    const taken = await db
      .updateTable('jobs')
      .set({ fence: due.fence + 1, is_taken: 1, next_at: until, failures })
      .where('kind', '=', kind)
      .where('blob', '=', due.blob)
      .where('fence', '=', due.fence)
      .where('next_at', '=', due.next_at)
      .returningAll()
      .executeTakeFirst()
    if (taken !== undefined) return taken
  }
}

export async function findNextDue(
  db: Database,
  kind: JobKind,
  running: string[],
): Promise<number | undefined> {
  return (await waiting(db, kind, running).select('next_at').executeTakeFirst())?.next_at
}

export async function renewJob(db: Database, job: TakenJob, until: number): Promise<boolean> {
  const result = await db.updateTable('jobs').set({ next_at: until }).where(isTaken(job)).executeTakeFirst()
  return result.numUpdatedRows > 0n
}

export async function returnJob(
  db: Database,
  job: TakenJob,
  values: Pick<JobRow, 'next_at'> & Partial<Pick<JobRow, 'refusals' | 'failures'>>,
): Promise<void> {
  await db
    .updateTable('jobs')
    .set({ ...values, is_taken: 0 })
    .where(isTaken(job))
    .execute()
}

/**
 * Deletes a job in the transaction that records its result. Returns false if its lease was lost or the job
 * was deleted.
 */
export async function deleteJob(trx: Database, job: TakenJob): Promise<boolean> {
  const result = await trx.deleteFrom('jobs').where(isTaken(job)).executeTakeFirst()
  return result.numDeletedRows > 0n
}

export async function deleteJobs(trx: Database, blob: string): Promise<void> {
  await trx.deleteFrom('jobs').where('blob', '=', blob).execute()
}

/**
 * Returns all leased jobs to the queue and adds a failure to each, because any of them may have caused a
 * crash.
 */
export async function clearTakenJobs(db: Database, now: number): Promise<void> {
  await db
    .updateTable('jobs')
    .set((job) => ({ is_taken: 0, next_at: now, failures: job('failures', '+', 1) }))
    .where('is_taken', '=', 1)
    .execute()
}

export async function countWaitingJobs(db: Database): Promise<Record<JobKind, number>> {
  const rows = await db
    .selectFrom('jobs')
    .select(({ fn }) => ['kind', fn.countAll<number>().as('count')])
    .where('is_taken', '=', 0)
    .groupBy('kind')
    .execute()
  const counts = new Map(rows.map(({ kind, count }) => [kind, Number(count)]))
  return {
    convert: counts.get('convert') ?? 0,
    hook: counts.get('hook') ?? 0,
    converted: counts.get('converted') ?? 0,
  }
}

export async function countJobs(db: Database, kind: JobKind): Promise<number> {
  const row = await db
    .selectFrom('jobs')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('kind', '=', kind)
    .executeTakeFirstOrThrow()
  return Number(row.count)
}

function isTaken({ kind, blob, fence }: TakenJob) {
  return (where: ExpressionBuilder<Tables, 'jobs'>) => where.and({ kind, blob, fence })
}

function waiting(db: Database, kind: JobKind, running: string[]) {
  const jobs = db.selectFrom('jobs').where('kind', '=', kind).orderBy('next_at').limit(1)
  return running.length === 0 ? jobs : jobs.where('blob', 'not in', running)
}
