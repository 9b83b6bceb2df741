/** Defines the operations on models. */
import { z } from 'zod'
import { operationsOf } from '../operations/operation.ts'
import type { ModelDeps } from './models.ts'
import { getModel, listModels } from './models.ts'
import { listAllowed, openPolicy } from './policy.ts'
import { Model, ModelChoices, ModelList, ModelReference, renderChoice } from './schema.ts'

const { query } = operationsOf<ModelDeps>()('Models', { callers: ['parent', 'agent'] })

export const modelsOperations = {
  list: query({
    http: { method: 'GET', path: '/v1/models' },
    docs: { summary: 'List the models that the key can use' },
    input: z.object({}),
    output: ModelList,
    run: ({ context: { deps, caller } }) => listModels(deps, caller),
  }),

  choices: query({
    auth: { callers: ['parent'] },
    input: z.object({}),
    output: ModelChoices,
    run: ({ context: { deps } }) => listAllowed(deps.models, openPolicy).map(renderChoice),
  }),

  get: query({
    http: { method: 'GET', path: '/v1/models/{model_id}' },
    request: { takesRest: true },
    docs: { summary: 'Get a model', failures: { 404: 'The model does not exist.' } },
    input: ModelReference,
    output: Model,
    run: ({ context: { deps, caller }, input }) => getModel(deps, caller, input.model_id),
  }),
}
