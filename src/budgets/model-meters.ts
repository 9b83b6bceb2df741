/** Remembers the models whose answers budgets measure in bytes, so that calls need no query. */
import type { Logger } from 'pino'
import type { Database } from '../db/database.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { inTurn } from '../replicas/in-turn.ts'
import { deleteMetersBefore, listMeters, type MeterRow, writeMeter } from './meters/rows.ts'

/** Polling interval; a poll finds changes that the bus did not report, such as changes made by the CLI. */
const POLL_EVERY_MS = 5_000

interface MeterDeps {
  readonly db: Database
  readonly clock: Pick<Clock, 'now'>
  readonly log: Logger
}

export interface ModelMeters {
  /** Finds the meter of a model that is currently measured in bytes. */
  find(provider: string, model: string): MeterRow | undefined
  list(): MeterRow[]
  /** Applies a meter in this process immediately; `settled` stores it. */
  set(meter: MeterRow): void
  /** Drops a meter that has been deleted from the database. */
  drop(provider: string, model: string): void
  /** Stores new meters, and reads all of them again. */
  invalidate(): void
  /** Resolves once this process has stored its new meters and loaded all of them. */
  settled(): Promise<void>
  close(): Promise<void>
}

export function followMeters({ db, clock, log }: MeterDeps): ModelMeters {
  let stored: ReadonlyMap<string, MeterRow> = new Map()
  /** Meters that could not be stored yet. */
  const unstored = new Map<string, MeterRow>()
  let isClosed = false

  async function load(): Promise<void> {
    for (const [id, meter] of unstored) {
      await writeMeter(db, meter)
      if (unstored.get(id) === meter) unstored.delete(id)
      stored = new Map([...stored, [id, meter]])
    }
    const rows = await listMeters(db)
    stored = new Map(rows.map((row) => [idOf(row.provider, row.model), row]))
    const now = unixSeconds(clock)
    if (rows.some(({ until }) => until <= now)) await deleteMetersBefore(db, now)
  }

  const reload = inTurn(async () => {
    if (isClosed) return
    await load().catch((error: unknown) => log.warn({ err: error }, 'could not load the meters of models'))
  })
  const find = (provider: string, model: string) => {
    if (stored.size === 0 && unstored.size === 0) return undefined
    const id = idOf(provider, model)
    const meter = unstored.get(id) ?? stored.get(id)
    return meter === undefined || meter.until <= unixSeconds(clock) ? undefined : meter
  }
  const poll = setInterval(() => void reload(), POLL_EVERY_MS).unref()
  return {
    find,
    list: () =>
      [...new Map([...stored, ...unstored]).values()].filter(({ until }) => until > unixSeconds(clock)),
    set: (meter) => void unstored.set(idOf(meter.provider, meter.model), meter),
    drop(provider, model) {
      const id = idOf(provider, model)
      unstored.delete(id)
      stored = new Map([...stored].filter(([known]) => known !== id))
    },
    invalidate: () => void reload(),
    settled: reload,
    async close() {
      clearInterval(poll)
      await reload()
      isClosed = true
    },
  }
}

/** Provider names contain no slash. */
function idOf(provider: string, model: string): string {
  return `${provider}/${model}`
}
