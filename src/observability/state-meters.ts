/** How the parts of a service are doing, looked up when somebody scrapes. */
import type { Dependencies } from './dependencies.ts'
import { type Looked, lookUp, type Meter } from './meters.ts'

/** How many connections a pool has, and how many wait for one. */
export interface PoolState {
  readonly busy: number
  readonly idle: number
  readonly waiting: number
}

export interface StateOptions {
  readonly version: string
  /** Undefined where there is no pool. */
  readonly readPool: (() => PoolState) | undefined
}

type StateDeps = Pick<Dependencies, 'metrics' | 'breakers' | 'models' | 'shared' | 'tools'>

export function createStateMeters(deps: StateDeps, { version, readPool }: StateOptions): Meter[] {
  const { models, shared, tools } = deps
  return [
    lookUp(
      { name: 'parley_build_info', help: 'Always 1; the labels say what runs.' },
      () => [[{ version, node: process.versions.node }, 1]],
      { aggregator: 'first' },
    ),
    lookUp({ name: 'parley_backend_up', help: 'Whether the backend has told its models.' }, () =>
      toLooked('provider', models.health()),
    ),
    lookUp({ name: 'parley_breaker_resting', help: 'Whether the model rests after failures.' }, () =>
      countResting(deps),
    ),
    lookUp({ name: 'parley_mcp_server_up', help: 'Whether the MCP server is connected.' }, () =>
      toLooked('server', tools.health()),
    ),
    lookUp({ name: 'parley_shared_state_up', help: 'Whether what replicas share can be reached.' }, () =>
      toLooked('store', shared.health()),
    ),
    ...(readPool === undefined ? [] : listPoolMeters(readPool)),
  ]
}

function listPoolMeters(readPool: () => PoolState): Meter[] {
  return [
    lookUp({ name: 'parley_database_connections', help: 'Connections of the pool.' }, () => {
      const { busy, idle } = readPool()
      return [
        [{ state: 'busy' }, busy],
        [{ state: 'idle' }, idle],
      ]
    }),
    lookUp({ name: 'parley_database_waiting', help: 'Statements that wait for a connection.' }, () => [
      [{}, readPool().waiting],
    ]),
  ]
}

function toLooked(label: string, states: Readonly<Record<string, 'up' | 'down'>>): Looked[] {
  return Object.entries(states).map(([name, state]) => [{ [label]: name }, state === 'up' ? 1 : 0])
}

/** Models that no backend lists are counted together. */
function countResting({ breakers, metrics }: StateDeps): Looked[] {
  const resting = new Map<string, { provider: string; model: string; count: number }>()
  for (const { provider, model, isResting } of breakers.list()) {
    const name = metrics.models.nameOf(provider, model)
    const known = resting.get(`${provider}/${name}`) ?? { provider, model: name, count: 0 }
    known.count += isResting ? 1 : 0
    resting.set(`${provider}/${name}`, known)
  }
  return [...resting.values()].map(({ provider, model, count }) => [{ provider, model }, count])
}
