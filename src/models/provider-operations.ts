/** Defines the operations that administrators use to manage model providers. */
import { actorOf } from '../identity/audit.ts'
import { operationsOf } from '../operations/operation.ts'
import type { ModelCatalogue } from './catalogue.ts'
import type { LiveProviders } from './live-providers.ts'
import {
  Provider,
  ProviderBody,
  ProviderCreation,
  ProviderDeleted,
  ProviderList,
  ProviderReference,
  ProviderTestInput,
  ProviderTestResult,
  ProviderUpdate,
  renderConfigured,
  renderStored,
  renderTest,
} from './provider-schema.ts'
import {
  createProvider,
  deleteProvider,
  listStoredProviders,
  type ProviderDeps,
  testNamedProvider,
  updateProvider,
} from './stored-providers.ts'

interface Dependencies extends ProviderDeps {
  readonly models: ModelCatalogue
  readonly providers: LiveProviders
}

async function listProviders(deps: Dependencies): Promise<ProviderList> {
  const { config } = deps
  const stored = await listStoredProviders(deps)
  const configured = config.providers.map((provider) => renderConfigured(deps, provider))
  return {
    object: 'list',
    data: [...configured, ...stored.map((row) => renderStored(deps, row))],
    allowed: config.consoleProviders,
  }
}

/**
 * Applies a change in this process before the operation returns, and makes other replicas load the providers
 * again.
 */
async function apply({ providers }: Dependencies): Promise<void> {
  providers.invalidate()
  await providers.settled()
}

const administrator = { callers: ['parent'], needs: 'administrator' } as const
const notFound = { 404: 'There is no provider with this name.' }
const readOnly = {
  409: 'The provider is set in the environment and is read-only here, or another request changed it at the same time.',
}

const { query, mutation } = operationsOf<Dependencies>()('Administration', administrator)

export const providersOperations = {
  list: query({
    http: { method: 'GET', path: '/v1/manager/admin/providers' },
    docs: { summary: 'List the model providers in the configuration and in the database' },
    input: ProviderReference.pick({}),
    output: ProviderList,
    run: ({ context: { deps } }) => listProviders(deps),
  }),

  create: mutation({
    http: { method: 'POST', path: '/v1/manager/admin/providers' },
    response: { status: 201 },
    docs: {
      summary: 'Add a model provider',
      description: 'All replicas use the provider within seconds, without a restart.',
      failures: { 409: 'A provider with this name exists, or the maximum number of providers is reached.' },
    },
    input: ProviderCreation,
    output: Provider,
    run: async ({ context, input: { name, ...fields } }) => {
      const row = await createProvider(context.deps, actorOf(context), name, fields)
      await apply(context.deps)
      return renderStored(context.deps, row)
    },
  }),

  update: mutation({
    http: { method: 'PUT', path: '/v1/manager/admin/providers/{name}' },
    request: { bodySchema: ProviderBody },
    docs: {
      summary: 'Change a model provider',
      description:
        'If you change the server URL, you must send the key again, so that a stored key is never sent to a different server. Calls in progress keep the previous values.',
      failures: { ...notFound, ...readOnly },
    },
    input: ProviderUpdate,
    output: Provider,
    run: async ({ context, input: { name, ...fields } }) => {
      const row = await updateProvider(context.deps, actorOf(context), name, fields)
      await apply(context.deps)
      return renderStored(context.deps, row)
    },
  }),

  remove: mutation({
    http: { method: 'DELETE', path: '/v1/manager/admin/providers/{name}' },
    docs: {
      summary: 'Delete a model provider',
      description:
        'Active calls end normally. Later requests that name its models fail; agents that use them by default switch to another available default model.',
      failures: { ...notFound, ...readOnly },
    },
    input: ProviderReference,
    output: ProviderDeleted,
    run: async ({ context, input: { name } }) => {
      await deleteProvider(context.deps, actorOf(context), name)
      await apply(context.deps)
      return { name, deleted: true as const }
    },
  }),

  test: mutation({
    http: { method: 'POST', path: '/v1/manager/admin/providers/test' },
    docs: {
      summary: 'Test a model provider',
      description:
        'Requests the list of models once, which uses no tokens. If the provider fails, the request still succeeds, and the result describes the failure.',
      failures: notFound,
    },
    input: ProviderTestInput,
    output: ProviderTestResult,
    run: async ({ context, input, signal }) => {
      const { name, kind = 'gateway', base_url, api_key } = input
      const fields = base_url === undefined ? undefined : { kind, base_url, api_key }
      const tested = await testNamedProvider(context.deps, actorOf(context), name, fields, signal)
      if (fields === undefined) await context.deps.models.refreshNow(name)
      return renderTest(tested)
    },
  }),
}
