/**
 * Stores rate windows, streams and replicas in PostgreSQL. Each check-and-update locks rows in key order,
 * then reads them again.
 */
import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../../db/database.ts'
import { LIVE_FOR_MS } from '../coordination-store.ts'
import type { StreamQuota } from '../limits.ts'
import { type Quota, WINDOW_MS } from '../limits.ts'

/** Age at which unused rows are deleted. */
const KEPT_MS = 60_000

const now = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`
const liveReplicas = sql`select id from replicas where seen_at_ms > ${now} - ${LIVE_FOR_MS}`

function toLimits(bounds: readonly { readonly key: string; readonly limit: number }[]): RawBuilder<unknown> {
  return sql.join(bounds.map(({ key, limit }) => sql`(${key}::text, ${limit}::bigint)`))
}

function toKeys(bounds: readonly { readonly key: string }[]): RawBuilder<unknown> {
  return sql.join(bounds.map(({ key }) => key))
}

export interface CountedWindow {
  readonly key: string
  readonly before: number
  readonly leftMs: number
  /** Number of hits that were counted, which is the same in all windows. */
  readonly counted: number
}

/**
 * Counts as many of the hits as fit into every window, at `cost` requests each; counts none if a window is
 * missing.
 */
export async function countHits(
  db: Database,
  quotas: readonly Quota[],
  hits: number,
  cost: number,
): Promise<CountedWindow[]> {
  const { rows } = await sql<CountedWindow>`
    with moment as materialized (select ${now} as now_ms),
    held as materialized (
      select key, count, ends_at_ms from rate_windows where key in (${toKeys(quotas)}) order by key for update
    ),
    open as materialized (
      select key,
        case when ends_at_ms <= now_ms then 0 else count end as count,
        case when ends_at_ms <= now_ms then now_ms + ${WINDOW_MS} else ends_at_ms end as ends_at_ms
      from held, moment
    ),
    room as materialized (
      select greatest(0, least(${hits}::bigint, min(coalesce(limits.most - open.count, 0)) / ${cost}::bigint)) as hits
      from (values ${toLimits(quotas)}) as limits (key, most) left join open using (key)
    ),
    changed as (
      update rate_windows set count = open.count + room.hits * ${cost}::bigint, ends_at_ms = open.ends_at_ms from open, room
      where rate_windows.key = open.key and room.hits > 0
    )
    select key, count as before, ends_at_ms - now_ms as "leftMs", room.hits as counted from open, moment, room`.execute(
    db,
  )
  return rows
}

/** Inserts missing windows as already expired. */
export async function insertWindows(db: Database, quotas: readonly Quota[]): Promise<void> {
  const rows = quotas.map(({ key }) => ({ key, count: 0, ends_at_ms: 0 }))
  await db
    .insertInto('rate_windows')
    .values(rows.sort(byKey))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

type StreamCount = { readonly key: string; readonly open: number }

/**
 * Counts one stream in every quota, or in none if one is full or missing. Returns how many were open before
 * on all live replicas.
 */
export async function acquireStream(
  db: Database,
  replica: string,
  quotas: readonly StreamQuota[],
): Promise<StreamCount[]> {
  const { rows } = await sql<StreamCount>`
    with held as materialized (
      select key, open::jsonb as open from stream_slots where key in (${toKeys(quotas)}) order by key for update
    ),
    live as materialized (
      select held.key, coalesce(sum(slots.value::int), 0) as total,
        coalesce(jsonb_object_agg(slots.key, slots.value) filter (where slots.key is not null), '{}') as open
      from held left join lateral (
        select * from jsonb_each(held.open) where key = ${replica} or key in (${liveReplicas})
      ) as slots on true
      group by held.key
    ),
    full_quotas as materialized (
      select 1 from (values ${toLimits(quotas)}) as limits (key, most) left join live using (key)
      where live.total is null or live.total >= limits.most
    ),
    changed as (
      update stream_slots set open = jsonb_set(
        live.open, array[${replica}::text], to_jsonb(coalesce((live.open ->> ${replica})::int, 0) + 1)
      )::text
      from live where stream_slots.key = live.key and not exists (select from full_quotas)
    )
    select key, total as open from live`.execute(db)
  return rows
}

export async function insertStreamCounts(db: Database, quotas: readonly StreamQuota[]): Promise<void> {
  const rows = quotas.map(({ key }) => ({ key, open: '{}' }))
  await db
    .insertInto('stream_slots')
    .values(rows.sort(byKey))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export async function adjustStreams(db: Database, replica: string, key: string, by: number): Promise<void> {
  await sql`
    insert into stream_slots (key, open) values (${key}, ${by > 0 ? JSON.stringify({ [replica]: by }) : '{}'})
    on conflict (key) do update set open = jsonb_set(
      stream_slots.open::jsonb, array[${replica}::text],
      to_jsonb(greatest(coalesce((stream_slots.open::jsonb ->> ${replica})::int, 0) + ${by}::int, 0))
    )::text`.execute(db)
}

export async function insertReplica(trx: Database, replica: string, former: string): Promise<void> {
  await trx.deleteFrom('replicas').where('id', '=', former).execute()
  await trx.insertInto('replicas').values({ id: replica, seen_at_ms: now }).execute()
}

/** Renews a replica's lease; returns false if it has expired. */
export async function renewReplica(db: Database, replica: string): Promise<boolean> {
  const result = await db
    .updateTable('replicas')
    .set({ seen_at_ms: now })
    .where('id', '=', replica)
    .where('id', 'in', sql<string>`(${liveReplicas})`)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

export async function deleteReplica(db: Database, replica: string): Promise<void> {
  await db.deleteFrom('replicas').where('id', '=', replica).execute()
}

export async function countReplicas(db: Database): Promise<number> {
  const query = sql<{ count: number }>`select count(*) as count from (${liveReplicas}) as live`
  return (await query.execute(db)).rows[0]?.count ?? 0
}

export async function deleteUnused(db: Database): Promise<void> {
  const oldest = sql<number>`${now} - ${KEPT_MS}::bigint`
  await db.deleteFrom('rate_windows').where('ends_at_ms', '<', oldest).execute()
  await db.deleteFrom('replicas').where('seen_at_ms', '<', oldest).execute()
  await sql`
    delete from stream_slots where not exists (
      select from jsonb_each(open::jsonb) as slots join replicas on replicas.id = slots.key
      where slots.value::int > 0
    )`.execute(db)
}

export async function notify(db: Database, channel: string, text: string): Promise<void> {
  await sql`select pg_notify(${channel}, ${text})`.execute(db)
}

/** Sorts all inserts in one order, which prevents deadlocks. */
function byKey(one: { readonly key: string }, other: { readonly key: string }): number {
  return one.key < other.key ? -1 : 1
}
