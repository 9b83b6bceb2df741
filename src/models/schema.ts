/** The wire shapes of models, and how models and agents are rendered into them. */
import { z } from 'zod'
import { reference } from '../lib/schema-bounds.ts'
import type { CatalogueModel } from './catalogue.ts'

/** Contract: Model; `provider` and `context_length` are ours. Decision: 8. */
export const Model = z
  .strictObject({
    id: z.string(),
    object: z.literal('model'),
    created: z.int().meta({ description: 'Unix seconds.' }),
    owned_by: z.string(),
    provider: z.string().optional().meta({ description: 'The backend that offers it; absent for agents.' }),
    context_length: z.int().optional().meta({ description: 'Tokens of context, when the backend says.' }),
  })
  .meta({ id: 'Model' })
export type Model = z.infer<typeof Model>

/** Contract: Models (GET list). */
export const ModelList = z
  .strictObject({ object: z.literal('list'), data: z.array(Model) })
  .meta({ id: 'ModelList' })

/** What a model policy can name: every model that chats, as its provider calls it. */
export const ModelChoices = z.array(
  z.strictObject({
    provider: z.string(),
    model: z.string().meta({ description: "The provider's own id, as a policy names it." }),
    id: z.string().meta({ description: 'The id a caller names.' }),
  }),
)

export const ModelReference = z.object({
  model_id: reference().meta({ description: 'May hold `/` and `:`, raw or encoded.' }),
})

export function renderChoice({
  provider,
  backendId,
  id,
}: CatalogueModel): z.output<typeof ModelChoices>[number] {
  return { provider, model: backendId, id }
}

/** How an agent is named where a model is expected. Decision: 7. */
export const AGENT_PREFIX = 'agent/'

export function renderModel(model: CatalogueModel): Model {
  const { id, created, ownedBy, provider, contextLength } = model
  const rendered: Model = { id, object: 'model', created, owned_by: ownedBy, provider }
  return contextLength === undefined ? rendered : { ...rendered, context_length: contextLength }
}

/** What the list of models says of an agent. */
export interface ListedAgent {
  readonly id: string
  /** Unix seconds. */
  readonly created_at: number
}

export function renderAgentModel({ id, created_at }: ListedAgent): Model {
  return { id: `${AGENT_PREFIX}${id}`, object: 'model', created: created_at, owned_by: 'parley' }
}
