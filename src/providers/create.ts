/**
 * Creates the configured providers; loads their code on demand, because the HTTP client alone takes a tenth
 * of the startup time.
 */
import type { Config, ProviderConfig } from '../config/config.ts'
import type { Clock } from '../lib/clock.ts'
import { newId, type Random } from '../lib/ids.ts'
import type { Reach } from '../lib/net.ts'
import type { PricedProvider } from '../prices/lookup.ts'
import type { ChatBackend } from './provider.ts'

interface BackendDeps {
  readonly clock: Clock
  readonly random: Random
}

export type RemoteConfig = Extract<ProviderConfig, { kind: 'gateway' | 'local' }>

/**
 * Creates all configured providers. If an in-process model cannot be loaded, closes the others. @throws
 * StartupError if an in-process model cannot be loaded.
 */
export async function createBackends(
  { providers, timings }: Pick<Config, 'providers' | 'timings'>,
  deps: BackendDeps,
): Promise<ChatBackend[]> {
  const opened = await Promise.allSettled(providers.map((provider) => createBackend(provider, timings, deps)))
  const failed = opened.find((result) => result.status === 'rejected')
  const backends = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  if (failed === undefined) return backends
  await Promise.all(backends.map((backend) => backend.close()))
  throw failed.reason
}

async function createBackend(
  provider: ProviderConfig,
  timings: Config['timings'],
  { clock, random }: BackendDeps,
): Promise<ChatBackend> {
  const { name } = provider
  if (provider.kind === 'mock') {
    const { createMockBackend } = await import('./mock.ts')
    const mock = createMockBackend({ name, clock, newId: () => newId('', 24, random), wait: clock.wait })
    return withPricing(mock, { kind: 'mock' })
  }
  if (provider.kind === 'local-model') {
    const { createLocalModelBackend, loadLocalModel } = await importLocalModels()
    const model = await loadLocalModel(provider)
    return withPricing(createLocalModelBackend({ name, model, clock, random }), { kind: 'local-model' })
  }
  return createRemote(provider, timings)
}

/**
 * Imports the optional package for in-process models (ADR 0041); servers without such a model never load it.
 */
export function importLocalModels() {
  return import('../../packages/in-process/src/index.ts')
}

interface RemoteLimits {
  /** Maximum time for listing the models; 10 seconds by default. */
  readonly modelListMs?: number
  /** The addresses that may be called; `any` by default. */
  readonly reach?: Reach
}

/** Creates one gateway or local-server provider. */
export async function createRemote(
  provider: RemoteConfig,
  timings: Config['timings'],
  { modelListMs, reach }: RemoteLimits = {},
): Promise<ChatBackend> {
  const options = {
    name: provider.name,
    url: provider.url,
    reach,
    apiKey: provider.apiKey,
    timings: {
      connectMs: timings.backendConnectMs,
      firstByteMs: timings.backendFirstByteMs,
      idleMs: timings.backendIdleMs,
      modelListMs,
    },
  }
  if (provider.kind === 'local') {
    const { createRunnerBackend } = await import('./local-server.ts')
    return withPricing(createRunnerBackend(options), { kind: 'local', url: provider.url })
  }
  const { createGatewayBackend } = await import('./gateway.ts')
  const { url, vendor, unknownOutcome, metering } = provider
  const backend = Object.assign(createGatewayBackend(options), { unknownOutcome, metering })
  return withPricing(backend, { kind: 'gateway', url, vendor })
}

function withPricing(backend: ChatBackend, pricing: PricedProvider): ChatBackend {
  return Object.assign(backend, { pricing })
}
