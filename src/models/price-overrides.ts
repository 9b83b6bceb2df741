/** Sets and deletes the prices that administrators use to override the configuration and the price list. */
import { findNameProblem } from '../config/file.ts'
import type { Database } from '../db/database.ts'
import { lockInstallation } from '../db/installation.ts'
import { type Actor, type AuditDeps, recordAudit } from '../identity/audit.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import type { PriceEntry } from '../prices/schema.ts'
import {
  countOverrideRows,
  deleteOverrideRow,
  findOverrideRow,
  listOverrideRows,
  type PriceOverrideRow,
  writeOverrideRow,
} from './store.ts'

export type PriceOverrideDeps = AuditDeps & { readonly db: Database; readonly clock: Pick<Clock, 'now'> }

/** A model whose price is set. */
export interface PricedModel {
  readonly provider: string
  readonly model: string
}

/** Splits `provider/model`; only the model can contain a slash. */
export function splitId(id: string): PricedModel {
  const end = id.indexOf('/')
  return { provider: id.slice(0, end), model: id.slice(end + 1) }
}

export interface StoredOverride extends PricedModel {
  readonly entries: readonly PriceEntry[]
  /** The name of the actor, as in the audit log. */
  readonly updatedBy: string
  /** Unix seconds. */
  readonly updatedAt: number
}

const MOST_OVERRIDES = 500

/** Lists the overrides of all models, sorted by provider and model. */
export async function listOverrides(db: Database): Promise<StoredOverride[]> {
  return (await listOverrideRows(db)).map(parseOverride)
}

export function parseOverride(row: PriceOverrideRow): StoredOverride {
  const { provider, model, entry, updated_by: updatedBy, updated_at: updatedAt } = row
  return { provider, model, entries: JSON.parse(entry), updatedBy, updatedAt }
}

interface NewOverride extends PricedModel {
  readonly entries: readonly PriceEntry[]
}

/**
 * Sets the prices of models; sets either all of them or none.
 * @throws ServiceError for an invalid name, or `conflict` if there are too many overrides.
 */
export async function setOverrides(
  deps: PriceOverrideDeps,
  actor: Actor,
  overrides: readonly NewOverride[],
): Promise<StoredOverride[]> {
  const updatedAt = unixSeconds(deps.clock)
  return deps.db.transaction().execute(async (trx) => {
    // Takes a lock, so that concurrent requests cannot exceed the maximum.
    await lockInstallation(trx)
    const stored: StoredOverride[] = []
    for (const { provider, model, entries } of overrides) {
      assertProviderName(provider)
      const before = await findOverrideRow(trx, provider, model)
      const row = { provider, model, entry: JSON.stringify(entries), updated_by: actor.name }
      await writeOverrideRow(trx, { ...row, updated_at: updatedAt })
      const replaced = before === undefined ? {} : { before: JSON.parse(before.entry) }
      await record({ ...deps, db: trx }, actor, 'price.set', row, { entries, ...replaced })
      stored.push({ provider, model, entries, updatedBy: actor.name, updatedAt })
    }
    if ((await countOverrideRows(trx)) > MOST_OVERRIDES)
      throw new ServiceError(
        'conflict',
        `There can be at most ${MOST_OVERRIDES} prices of this kind; delete one first, or use PARLEY_CONFIG.`,
      )
    return stored
  })
}

/** @throws ServiceError `not_found` */
export async function deleteOverride(
  deps: PriceOverrideDeps,
  actor: Actor,
  { provider, model }: PricedModel,
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    const row = await deleteOverrideRow(trx, provider, model)
    if (row === undefined)
      throw new ServiceError('not_found', `No price has been set for '${provider}/${model}'.`, {
        param: 'model',
      })
    await record({ ...deps, db: trx }, actor, 'price.delete', row, { before: JSON.parse(row.entry) })
  })
}

function assertProviderName(name: string): void {
  const problem = findNameProblem(name)
  if (problem === undefined) return
  const message = `provider: ${problem.replace('a name must be', 'must be')}`
  throw new ServiceError('invalid_value', message, { param: 'provider' })
}

function record(
  deps: AuditDeps,
  actor: Actor,
  action: 'price.set' | 'price.delete',
  { provider, model }: PricedModel,
  details: Readonly<Record<string, unknown>>,
): Promise<void> {
  const target = { kind: 'price', id: `${provider}/${model}` } as const
  return recordAudit(deps, actor, { action, target, tenantId: null, details })
}
