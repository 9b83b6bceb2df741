/** Makes the backends the operator chose; only their own code is loaded: the gateway's HTTP client alone is a tenth of a start. */
import type { Config, ProviderConfig } from '../../config.ts'
import type { Deps } from '../../deps.ts'
import { newId } from '../../keys/format.ts'
import type { ChatBackend } from '../backend.ts'

type GatewayConfig = Extract<ProviderConfig, { kind: 'gateway' }>

/** The backends of a running service, one for each provider and in their order. */
export async function createBackends(
  { providers, timings }: Pick<Config, 'providers' | 'timings'>,
  deps: Pick<Deps, 'clock' | 'random'>,
): Promise<ChatBackend[]> {
  return Promise.all(
    providers.map((provider) =>
      provider.kind === 'gateway' ? createGateway(provider, timings) : createMock(provider.name, deps),
    ),
  )
}

/** A gateway alone, for whoever only looks whether it answers; `modelListMs` bounds its model list. */
export async function createGateway(
  { name, url, apiKey }: GatewayConfig,
  timings: Config['timings'],
  modelListMs?: number,
): Promise<ChatBackend> {
  const { createGatewayBackend } = await import('./gateway.ts')
  return createGatewayBackend({
    name,
    url,
    ...(apiKey === undefined ? {} : { apiKey }),
    timings: {
      connectMs: timings.backendConnectMs,
      firstByteMs: timings.backendFirstByteMs,
      idleMs: timings.backendIdleMs,
      ...(modelListMs === undefined ? {} : { modelListMs }),
    },
  })
}

async function createMock(
  name: string,
  { clock, random }: Pick<Deps, 'clock' | 'random'>,
): Promise<ChatBackend> {
  const { createMockBackend } = await import('./mock.ts')
  return createMockBackend({ name, clock, newId: () => newId('', 24, random), wait: clock.wait })
}
