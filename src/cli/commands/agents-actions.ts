/** What the `agents` commands do: work on one parent key's agents, beside a running server or without one. */
import { randomBytes } from 'node:crypto'
import { deleteAgent, getAgent, listAgents } from '../../agents/agents.ts'
import { type Agent, createAgentDirectory } from '../../agents/cache.ts'
import { loadSealer } from '../../agents/sealed-keys.ts'
import type { Config } from '../../config/config.ts'
import { createKeyDirectory } from '../../identity/authenticate.ts'
import { createPositions, systemClock } from '../../lib/clock.ts'
import { StartupError } from '../../lib/errors.ts'
import type { Deps } from '../../server/dependencies.ts'
import { withDatabase } from '../database.ts'
import { print, printExactly, printResult, renderTable, renderTime, toVisible } from '../output.ts'
import { chooseParentKey, commandActor } from '../parent-key.ts'
import { writeAgentFiles } from './agent-files.ts'

/** What every `agents` command takes. */
export interface AgentOptions {
  /** The parent key: its id, or the whole key. */
  readonly key?: string
  readonly json?: boolean
}

/** What the verbs of agents need, and whose agents they are about. */
export interface AgentWork {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'random' | 'nextPosition' | 'keys' | 'agents'>
  readonly config: Config
  readonly tenantId: string
}

export function list({ key, json = false }: AgentOptions): Promise<void> {
  return withAgents(key, async ({ deps, tenantId }) => {
    const { agents } = await listAgents(deps, tenantId, {})
    if (json) return print(JSON.stringify(agents.map(renderAgent)))
    const cells = agents.map(({ row, definition }) => [
      row.id,
      row.name,
      definition.model ?? '-',
      renderTime(row.created_at),
      renderTime(row.updated_at),
    ])
    print(renderTable(['ID', 'NAME', 'MODEL', 'CREATED', 'UPDATED'], cells))
  })
}

export function get(id: string, options: AgentOptions & { markdown?: boolean }): Promise<void> {
  return withAgents(options.key, async ({ deps, tenantId }) => {
    const agent = await getAgent(deps, tenantId, id)
    const { row, markdown } = agent
    if (!options.json) return printExactly(options.markdown ? markdown : row.source)
    print(JSON.stringify({ ...renderAgent(agent), format: row.format, yaml: row.source, markdown }))
  })
}

export function exportTo(folder: string, options: AgentOptions & { force?: boolean }): Promise<void> {
  return withAgents(options.key, async ({ deps, tenantId }) => {
    const { agents } = await listAgents(deps, tenantId, { order: 'asc' })
    const files = await writeAgentFiles(folder, agents, options.force ?? false)
    if (options.json) {
      return print(JSON.stringify(files.map(({ id, path, state }) => ({ id, file: path, state }))))
    }
    const lines = files.map(({ path, state }) => `${state.padEnd(7)}  ${toVisible(path)}`)
    print(lines.length === 0 ? 'This key has no agents.' : lines.join('\n'))
  })
}

export function remove(id: string, options: AgentOptions & { yes?: boolean }): Promise<void> {
  return withAgents(options.key, async (work) => {
    const { row } = await getAgent(work.deps, work.tenantId, id)
    if (!options.yes) {
      throw new StartupError(`That deletes "${row.name}" (${id}) and its key for good; add --yes to do it.`)
    }
    await deleteAgent(await toWriter(work), commandActor(), work.tenantId, id)
    printResult(options.json ?? false, { id, deleted: true }, `deleted ${id}`)
  })
}

/** Works on the agents of the key that was named, or of the only one. */
export function withAgents(key: string | undefined, run: (work: AgentWork) => Promise<void>): Promise<void> {
  return withDatabase(async (db, config) => {
    const tenantId = await chooseParentKey(db, key)
    const deps = {
      db,
      clock: systemClock,
      random: randomBytes,
      nextPosition: createPositions(systemClock),
      keys: createKeyDirectory(db, systemClock),
      agents: createAgentDirectory(db, systemClock),
    }
    await run({ deps, config, tenantId })
  })
}

/** Only who writes needs the secret: looking at agents must not make one. */
export async function toWriter({ deps, config }: AgentWork) {
  return { ...deps, sealer: await loadSealer(config, deps) }
}

function renderAgent({ row, definition }: Agent) {
  const { id, name, version, created_at, updated_at } = row
  return { id, name, model: definition.model ?? null, version, created_at, updated_at }
}
