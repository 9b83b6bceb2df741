/** Loads the prices that administrators set, so that calls use them without a restart and without a query. */
import type { Logger } from 'pino'
import type { Database } from '../db/database.ts'
import type { PriceOverride } from '../prices/lookup.ts'
import { inTurn } from '../replicas/in-turn.ts'
import { dayOf } from '../usage/days.ts'
import { parseOverride, type StoredOverride } from './price-overrides.ts'
import { listOverrideRows, type PriceOverrideRow } from './store.ts'

/** Polling interval; a poll finds changes that the bus did not report, such as changes made by the CLI. */
const POLL_EVERY_MS = 5_000

type LiveOverride = PriceOverride & StoredOverride

interface Loaded {
  readonly row: PriceOverrideRow
  readonly override: LiveOverride
}

export interface LivePrices {
  /** Finds an override by `provider/model`. */
  find(key: string): PriceOverride | undefined
  list(): readonly StoredOverride[]
  /** Reads the overrides again. Call it after every change to them. */
  invalidate(): void
  /** Resolves once this process has loaded the overrides. */
  settled(): Promise<void>
  close(): Promise<void>
}

export function followPrices({ db, log }: { readonly db: Database; readonly log: Logger }): LivePrices {
  let loaded: ReadonlyMap<string, Loaded> = new Map()
  let isClosed = false

  const reload = inTurn(async () => {
    if (isClosed) return
    try {
      const rows = await listOverrideRows(db)
      loaded = new Map(
        rows.map((row) => {
          const key = `${row.provider}/${row.model}`
          return [key, toLoaded(row, loaded.get(key))]
        }),
      )
    } catch (error) {
      log.warn({ err: error }, 'could not read the prices that administrators set')
    }
  })
  const poll = setInterval(() => void reload(), POLL_EVERY_MS).unref()
  return {
    find: (key) => loaded.get(key)?.override,
    list: () => [...loaded.values()].map(({ override }) => override),
    invalidate: () => void reload(),
    settled: reload,
    async close() {
      clearInterval(poll)
      isClosed = true
      await reload()
    },
  }
}

/** Returns the same object for an unchanged row, so that the price book can detect changes. */
function toLoaded(row: PriceOverrideRow, known: Loaded | undefined): Loaded {
  const columns = ['entry', 'updated_by', 'updated_at'] as const
  if (known !== undefined && columns.every((column) => known.row[column] === row[column])) return known
  return { row, override: toLive(parseOverride(row)) }
}

function toLive(stored: StoredOverride): LiveOverride {
  return { ...stored, date: dayOf(stored.updatedAt * 1000) }
}

/** Returns the overrides, keyed by `provider/model`, as the price book needs them. */
export function toLiveOverrides(stored: readonly StoredOverride[]): ReadonlyMap<string, PriceOverride> {
  return new Map(stored.map((one) => [`${one.provider}/${one.model}`, toLive(one)]))
}
