/** Makes the backend the operator chose; only its own code is loaded: the gateway's HTTP client alone is a tenth of a start. */
import type { BackendConfig, Config } from '../../config.ts'
import type { Deps } from '../../deps.ts'
import { newId } from '../../keys/format.ts'
import type { ChatBackend } from '../backend.ts'

type GatewayConfig = Extract<BackendConfig, { kind: 'gateway' }>

/** The backend of a running service. */
export async function createBackend(
  { backend, timings }: Pick<Config, 'backend' | 'timings'>,
  { clock, random }: Pick<Deps, 'clock' | 'random'>,
): Promise<ChatBackend> {
  if (backend.kind === 'gateway') return createGateway(backend, timings)
  const { createMockBackend } = await import('./mock.ts')
  return createMockBackend({ clock, newId: () => newId('', 24, random), wait: clock.wait })
}

/** The gateway alone, for whoever only looks whether it answers; `modelListMs` bounds its model list. */
export async function createGateway(
  { kind, url, apiKey }: GatewayConfig,
  timings: Config['timings'],
  modelListMs?: number,
): Promise<ChatBackend> {
  const { createGatewayBackend } = await import('./gateway.ts')
  return createGatewayBackend({
    name: kind,
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
