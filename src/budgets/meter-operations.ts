/** Defines the operations that list and delete the meters of models. */
import { z } from 'zod'
import type { Database } from '../db/database.ts'
import { type Actor, type AuditDeps, actorOf, recordAudit } from '../identity/audit.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { modelId, singleLine } from '../lib/schema-bounds.ts'
import { operationsOf } from '../operations/operation.ts'
import { deleteMeter, listMeters, type MeterRow } from './meters/rows.ts'
import type { ModelMeters } from './model-meters.ts'

type WriteDeps = AuditDeps & { readonly db: Database }
type MeterDeps = WriteDeps & { readonly clock: Pick<Clock, 'now'>; readonly meters: ModelMeters }

const MeterReference = z.strictObject({
  provider: z.string().max(64).meta({ description: 'Name of the provider.' }),
  model: singleLine(modelId()).meta({ description: "The provider's model id; can contain `/`." }),
})
type MeterReference = z.output<typeof MeterReference>

export const ModelMeter = z
  .strictObject({
    object: z.literal('model_meter'),
    provider: z.string(),
    model: z.string(),
    metering: z.literal('bytes'),
    reason: z.string().meta({
      description: 'The bound that the model exceeded: `bytes`, `output` or `input`.',
    }),
    until: z.int().meta({ description: 'Unix seconds.' }),
  })
  .meta({ id: 'ModelMeter' })
export type ModelMeter = z.output<typeof ModelMeter>

const MeterList = z
  .strictObject({ object: z.literal('list'), data: z.array(ModelMeter) })
  .meta({ id: 'ModelMeterList' })
const MeterDeleted = z
  .strictObject({
    object: z.literal('model_meter'),
    provider: z.string(),
    model: z.string(),
    deleted: z.literal(true),
  })
  .meta({ id: 'ModelMeterDeleted' })

export function renderMeter(meter: MeterRow): ModelMeter {
  return { object: 'model_meter', ...meter }
}

/** Lists the meters that have not ended. */
export async function readMeters(db: Database, clock: Pick<Clock, 'now'>): Promise<MeterRow[]> {
  return (await listMeters(db)).filter(({ until }) => until > unixSeconds(clock))
}

/** @throws ServiceError `not_found` */
export async function clearMeter(
  deps: WriteDeps,
  actor: Actor,
  { provider, model }: MeterReference,
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    const row = await deleteMeter(trx, provider, model)
    if (row === undefined)
      throw new ServiceError('not_found', `'${provider}/${model}' is not metered by bytes.`, {
        param: 'model',
      })
    const target = { kind: 'model', id: `${provider}/${model}` } as const
    const { reason, until } = row
    const details = { before: { reason, until } }
    await recordAudit({ ...deps, db: trx }, actor, {
      action: 'meter.delete',
      target,
      tenantId: null,
      details,
    })
  })
}

const { query, mutation } = operationsOf<MeterDeps>()('Administration', {
  callers: ['parent'],
  needs: 'administrator',
})

export const meterOperations = {
  list: query({
    http: { method: 'GET', path: '/v1/manager/admin/model-meters' },
    docs: {
      summary: 'List the models whose answers budgets measure in bytes',
      description: 'Contains models that exceeded a bound in the last 24 hours.',
    },
    input: z.strictObject({}),
    output: MeterList,
    run: async ({ context: { deps } }) => ({
      object: 'list' as const,
      data: (await readMeters(deps.db, deps.clock)).map(renderMeter),
    }),
  }),

  delete: mutation({
    http: { method: 'DELETE', path: '/v1/manager/admin/model-meters/{provider}/{model}' },
    request: { takesRest: true },
    docs: {
      summary: 'Trust the usage of a model again',
      description: 'All replicas apply the change within seconds.',
      failures: { 404: 'The model is not metered by bytes.' },
    },
    input: MeterReference,
    output: MeterDeleted,
    run: async ({ context, input }) => {
      const { deps } = context
      await clearMeter(deps, actorOf(context), input)
      deps.meters.drop(input.provider, input.model)
      deps.meters.invalidate()
      return { object: 'model_meter' as const, ...input, deleted: true as const }
    },
  }),
}
