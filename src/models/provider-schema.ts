/** Defines the API schemas of providers, and renders providers and test results. */
import { z } from 'zod'
import type { Config, ProviderConfig } from '../config/config.ts'
import type { BackendModel } from '../providers/provider.ts'
import type { ModelCatalogue } from './catalogue.ts'
import type { LiveProviders } from './live-providers.ts'
import { describeFailure } from './provider-test.ts'
import type { ProviderRow } from './store.ts'
import { type Tested, urlOf } from './stored-providers.ts'

const MOST_LISTED_MODELS = 200
const seconds = z.int().meta({ description: 'Unix seconds.' })

const name = z
  .string()
  .max(64)
  .meta({
    description:
      'Name of the provider and prefix of its qualified model ids: 1 to 32 lowercase letters, digits, `-` and `_`.',
    examples: ['openai'],
  })

const kind = z.enum(['gateway', 'local'], { error: 'must be gateway or local' }).meta({
  description: '`local` for Ollama and llama-server, `gateway` for any other server with the OpenAI API.',
})

const baseUrl = z
  .string()
  .max(2_000, 'must have at most 2000 characters')
  .meta({
    description: 'URL to which Parley adds `/chat/completions`; most end in `/v1`.',
    examples: ['https://api.openai.com/v1'],
  })

const apiKey = z.string().max(1_000, 'must have at most 1000 characters').nullish().meta({
  description:
    'Key that Parley sends to the provider. It is stored encrypted and never returned. If omitted, keeps the stored key; null removes it.',
})

const fields = { kind: kind.default('gateway'), base_url: baseUrl, api_key: apiKey }

export const ProviderReference = z.strictObject({ name })

export const ProviderCreation = z.strictObject({ name, ...fields }).meta({ id: 'ProviderCreation' })

export const ProviderBody = z.strictObject(fields).meta({ id: 'ProviderUpdate' })
export const ProviderUpdate = ProviderBody.extend({ name })

export const ProviderTestInput = z
  .strictObject({ name, kind: kind.optional(), base_url: baseUrl.optional(), api_key: apiKey })
  .meta({
    id: 'ProviderTestInput',
    description:
      'Without `base_url`, tests the saved provider; with it, tests these values without saving them.',
  })

export const Provider = z
  .strictObject({
    name,
    source: z.enum(['environment', 'console']).meta({
      description:
        '`environment` for a provider in the settings or the configuration file, which is read-only.',
    }),
    kind: z.enum(['gateway', 'local', 'mock', 'in_process']),
    base_url: z.string().nullable().meta({ description: 'Null for a provider inside the server.' }),
    has_key: z.boolean(),
    key_hint: z.string().nullable().meta({
      description:
        'Last four characters of the key; null if there is no key, or if it is short or from the environment.',
    }),
    status: z.enum(['up', 'down', 'checking', 'unused']).meta({
      description: '`unused` if the server cannot use the stored provider; `problem` states the reason.',
    }),
    problem: z
      .string()
      .nullable()
      .meta({ description: 'The problem and its solution; null without a problem.' }),
    latency_ms: z.int().nullable().meta({ description: 'Duration of the last request for the model list.' }),
    checked_at: seconds.nullable(),
    models: z.int().meta({ description: 'Number of models that the provider lists.' }),
    created_at: seconds.nullable(),
    updated_at: seconds.nullable(),
  })
  .meta({ id: 'Provider' })
export type Provider = z.output<typeof Provider>

export const ProviderList = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(Provider),
    allowed: z.enum(['any', 'public', 'off']).meta({
      description: 'The value of PARLEY_CONSOLE_PROVIDERS: which providers administrators may add.',
    }),
  })
  .meta({ id: 'ProviderList' })
export type ProviderList = z.output<typeof ProviderList>

export const ProviderDeleted = z
  .strictObject({ name, deleted: z.literal(true) })
  .meta({ id: 'ProviderDeleted' })

export const ProviderTestResult = z
  .strictObject({
    ok: z.boolean().meta({ description: 'True if the provider returned its model list.' }),
    latency_ms: z.int(),
    problem: z
      .string()
      .nullable()
      .meta({ description: 'The problem and its solution; null after a success.' }),
    model_count: z.int(),
    models: z.array(z.strictObject({ id: z.string(), chats: z.boolean() })).meta({
      description: `The first ${MOST_LISTED_MODELS} models; \`chats\` is false for embedding models.`,
    }),
  })
  .meta({ id: 'ProviderTestResult' })

interface RenderDeps {
  readonly config: Config
  readonly models: ModelCatalogue
  readonly providers: Pick<LiveProviders, 'problemOf'>
}

export function renderConfigured(deps: RenderDeps, provider: ProviderConfig): Provider {
  const url = urlOf(provider)
  return {
    name: provider.name,
    source: 'environment',
    kind: provider.kind === 'local-model' ? 'in_process' : provider.kind,
    base_url: url,
    has_key: 'apiKey' in provider && provider.apiKey !== undefined,
    key_hint: null,
    ...renderState(deps, provider.name, url),
    created_at: null,
    updated_at: null,
  }
}

export function renderStored(deps: RenderDeps, row: ProviderRow): Provider {
  const problem = deps.providers.problemOf(row.name)
  const unused = { status: 'unused', problem, latency_ms: null, checked_at: null, models: 0 } as const
  return {
    name: row.name,
    source: 'console',
    kind: row.kind,
    base_url: row.base_url,
    has_key: row.key_sealed !== null,
    key_hint: row.key_hint,
    ...(problem === undefined ? renderState(deps, row.name, row.base_url) : { ...unused, problem }),
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

function renderState({ models }: RenderDeps, name: string, url: string | null) {
  const check = models.check(name)
  const count = models.listOf(name).length
  if (check === undefined)
    return { status: 'checking', problem: null, latency_ms: null, checked_at: null, models: count } as const
  const { failure, latencyMs, checkedAt } = check
  return {
    status: failure === null ? 'up' : 'down',
    problem: failure === null ? null : describeFailure(failure, url ?? name),
    latency_ms: latencyMs,
    checked_at: checkedAt,
    models: count,
  } as const
}

export function renderTest({ latencyMs, models = [], problem }: Tested): z.output<typeof ProviderTestResult> {
  return {
    ok: problem === undefined,
    latency_ms: latencyMs,
    problem: problem ?? null,
    model_count: models.length,
    models: models.slice(0, MOST_LISTED_MODELS).map(({ id, chats }: BackendModel) => ({ id, chats })),
  }
}
