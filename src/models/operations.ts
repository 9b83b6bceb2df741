/** The operations on models. */
import { z } from 'zod'
import { operationsOf } from '../operations/operation.ts'
import type { ModelDeps } from './models.ts'
import { getModel, listModels } from './models.ts'
import { listAllowed, openPolicy } from './policy.ts'
import { Model, ModelChoices, ModelList, ModelReference, renderChoice } from './schema.ts'

const tag = 'Models'
const everybody = { callers: ['parent', 'agent'] } as const

const define = operationsOf<ModelDeps>()

export const modelsOperations = {
  list: define({
    kind: 'query',
    http: { method: 'GET', path: '/v1/models' },
    auth: everybody,
    docs: { tag, summary: 'List the models a key may use' },
    input: z.object({}),
    output: ModelList,
    run: ({ context: { deps, caller } }) => listModels(deps, caller),
  }),

  choices: define({
    kind: 'query',
    auth: { callers: ['parent'] },
    input: z.object({}),
    output: ModelChoices,
    run: ({ context: { deps } }) => listAllowed(deps.models, openPolicy).map(renderChoice),
  }),

  get: define({
    kind: 'query',
    http: { method: 'GET', path: '/v1/models/{model_id}' },
    auth: everybody,
    request: { takesRest: true },
    docs: { tag, summary: 'Read a model', failures: { 404: 'There is no such model.' } },
    input: ModelReference,
    output: Model,
    run: ({ context: { deps, caller }, input }) => getModel(deps, caller, input.model_id),
  }),
}
