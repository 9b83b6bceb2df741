/** The rows of jobs: what is still to be done with complete uploads. Security: 2.8. */
import type { Selectable } from 'kysely'
import type { Database } from '../../db/database.ts'
import type { JobTable } from '../../db/tables.ts'

export type JobRow = Selectable<JobTable>
export type JobKind = JobRow['kind']

/** A job as whoever has taken it names it. */
export type TakenJob = Pick<JobRow, 'kind' | 'blob' | 'fence'>

/** Adds a job of an upload, to be taken at once. Runs in the transaction that completes the upload. */
export async function insertJob(trx: Database, kind: JobKind, blob: string, now: number): Promise<void> {
  await trx.insertInto('jobs').values({ kind, blob, next_at: now }).execute()
}

/** Takes the job that has waited longest of those that are due by `now`, until that second; none of `running`. */
export async function takeJob(
  db: Database,
  kind: JobKind,
  { now, until, running }: { readonly now: number; readonly until: number; readonly running: string[] },
): Promise<JobRow | undefined> {
  // Of those that look for one at the same time a single one gets it; the others look again.
  for (;;) {
    const due = await waiting(db, kind, running)
      .select(['blob', 'fence', 'next_at', 'failures', 'is_taken'])
      .executeTakeFirst()
    if (due === undefined || due.next_at > now) return undefined
    // Whoever had it and let its time run out is gone, and may be gone because of it.
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

/** The second from which on one of the others is due; undefined when there are none. */
export async function findNextDue(
  db: Database,
  kind: JobKind,
  running: string[],
): Promise<number | undefined> {
  return (await waiting(db, kind, running).select('next_at').executeTakeFirst())?.next_at
}

/** Keeps a job for longer; false when it is another's by now, or gone. */
export async function renewJob(db: Database, job: TakenJob, until: number): Promise<boolean> {
  const result = await db
    .updateTable('jobs')
    .set({ next_at: until })
    .where('kind', '=', job.kind)
    .where('blob', '=', job.blob)
    .where('fence', '=', job.fence)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** Gives a job back, to be taken again from that second on. */
export async function returnJob(
  db: Database,
  job: TakenJob,
  values: Pick<JobRow, 'next_at'> & Partial<Pick<JobRow, 'refusals' | 'failures'>>,
): Promise<void> {
  await db
    .updateTable('jobs')
    .set({ ...values, is_taken: 0 })
    .where('kind', '=', job.kind)
    .where('blob', '=', job.blob)
    .where('fence', '=', job.fence)
    .execute()
}

/** Ends a job that is done; false when it is another's by now, or gone. Runs in the transaction that writes what it has done. */
export async function deleteJob(trx: Database, job: TakenJob): Promise<boolean> {
  const result = await trx
    .deleteFrom('jobs')
    .where('kind', '=', job.kind)
    .where('blob', '=', job.blob)
    .where('fence', '=', job.fence)
    .executeTakeFirst()
  return result.numDeletedRows > 0n
}

/** Ends all jobs of an upload. */
export async function deleteJobs(trx: Database, blob: string): Promise<void> {
  await trx.deleteFrom('jobs').where('blob', '=', blob).execute()
}

/** Makes every job that somebody had free again: those who had them are gone, and may be gone because of them. */
export async function clearTakenJobs(db: Database, now: number): Promise<void> {
  await db
    .updateTable('jobs')
    .set((job) => ({ is_taken: 0, next_at: now, failures: job('failures', '+', 1) }))
    .where('is_taken', '=', 1)
    .execute()
}

/** How many nobody has taken. */
export async function countWaitingJobs(db: Database): Promise<Record<JobKind, number>> {
  const rows = await db
    .selectFrom('jobs')
    .select(({ fn }) => ['kind', fn.countAll<number>().as('count')])
    .where('is_taken', '=', 0)
    .groupBy('kind')
    .execute()
  const counts = new Map(rows.map(({ kind, count }) => [kind, Number(count)]))
  return { convert: counts.get('convert') ?? 0, hook: counts.get('hook') ?? 0 }
}

export async function countJobs(db: Database, kind: JobKind): Promise<number> {
  const row = await db
    .selectFrom('jobs')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('kind', '=', kind)
    .executeTakeFirstOrThrow()
  return Number(row.count)
}

function waiting(db: Database, kind: JobKind, running: string[]) {
  const jobs = db.selectFrom('jobs').where('kind', '=', kind).orderBy('next_at').limit(1)
  return running.length === 0 ? jobs : jobs.where('blob', 'not in', running)
}
