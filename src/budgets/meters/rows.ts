/** Reads and writes the meters of models. */
import type { Selectable } from 'kysely'
import type { Database } from '../../db/database.ts'
import type { ModelMeterTable } from '../../db/tables.ts'

export type MeterRow = Selectable<ModelMeterTable>

export function listMeters(db: Database): Promise<MeterRow[]> {
  return db.selectFrom('model_meters').selectAll().orderBy('provider').orderBy('model').execute()
}

export async function writeMeter(db: Database, meter: MeterRow): Promise<void> {
  const { metering, reason, until } = meter
  await db
    .insertInto('model_meters')
    .values(meter)
    .onConflict((conflict) =>
      conflict.columns(['provider', 'model']).doUpdateSet({ metering, reason, until }),
    )
    .execute()
}

/** Returns the deleted meter; undefined if there was none. */
export function deleteMeter(db: Database, provider: string, model: string): Promise<MeterRow | undefined> {
  return db
    .deleteFrom('model_meters')
    .where('provider', '=', provider)
    .where('model', '=', model)
    .returningAll()
    .executeTakeFirst()
}

/** Deletes the meters that have ended. */
export async function deleteMetersBefore(db: Database, nowSeconds: number): Promise<void> {
  await db.deleteFrom('model_meters').where('until', '<=', nowSeconds).execute()
}
