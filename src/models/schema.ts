/** Defines the model schemas, and renders models and agents. */
import { z } from 'zod'
import { reference } from '../lib/schema-bounds.ts'
import type { CatalogueModel } from './catalogue.ts'

export const Model = z
  .strictObject({
    id: z.string(),
    object: z.literal('model'),
    created: z.int().meta({ description: 'Unix seconds.' }),
    owned_by: z.string(),
    provider: z.string().optional().meta({ description: 'Name of the provider; absent for agents.' }),
    context_length: z
      .int()
      .optional()
      .meta({ description: 'Context size in tokens, if the provider reports it.' }),
  })
  .meta({ id: 'Model' })
export type Model = z.infer<typeof Model>

export const ModelList = z
  .strictObject({ object: z.literal('list'), data: z.array(Model) })
  .meta({ id: 'ModelList' })

export const ModelChoices = z.array(
  z.strictObject({
    provider: z.string(),
    model: z.string().meta({ description: 'Model id as the provider lists it; used in policies.' }),
    id: z.string().meta({ description: 'Model id that callers use in requests.' }),
  }),
)

export const ModelReference = z.object({
  model_id: reference().meta({
    description: 'Model id; can contain `/` and `:`, which may be percent-encoded.',
  }),
})

export function renderChoice({
  provider,
  backendId,
  id,
}: CatalogueModel): z.output<typeof ModelChoices>[number] {
  return { provider, model: backendId, id }
}

export const AGENT_PREFIX = 'agent/'

export function renderModel(model: CatalogueModel): Model {
  const { id, created, ownedBy, provider, contextLength } = model
  const rendered: Model = { id, object: 'model', created, owned_by: ownedBy, provider }
  return contextLength === undefined ? rendered : { ...rendered, context_length: contextLength }
}

export interface ListedAgent {
  readonly id: string
  readonly created_at: number
}

export function renderAgentModel({ id, created_at }: ListedAgent): Model {
  return { id: `${AGENT_PREFIX}${id}`, object: 'model', created: created_at, owned_by: 'parley' }
}
