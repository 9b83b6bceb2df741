/** Implements the `agents` commands except `apply`: `list`, `get`, `export` and `delete`. */
import { deleteAgent, getAgent } from '../../agents/agents.ts'
import { type Agent, createAgentDirectory } from '../../agents/cache.ts'
import { listAllAgents } from '../../agents/list.ts'
import { loadSealer } from '../../agents/sealed-keys.ts'
import type { Config } from '../../config/config.ts'
import { deleteAgentConversations } from '../../conversations/conversations.ts'
import { StartupError } from '../../lib/errors.ts'
import type { Deps } from '../../server/dependencies.ts'
import {
  chooseParentKey,
  commandActor,
  createDeps,
  withConversations,
  withDatabase,
} from '../installation.ts'
import { print, printExactly, printResult, renderTable, renderTime, toVisible } from '../output.ts'
import { writeAgentFiles } from './agent-files.ts'

export interface AgentOptions {
  /** The parent key, or its id. */
  readonly key?: string
  readonly json?: boolean
}

export interface AgentAccess {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'random' | 'nextPosition' | 'keys' | 'agents'>
  readonly config: Config
  readonly tenantId: string
}

export function list({ key, json = false }: AgentOptions): Promise<void> {
  return withAgents(key, async ({ deps, tenantId }) => {
    const agents = await listAllAgents(deps, tenantId)
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
    const agents = await listAllAgents(deps, tenantId, 'asc')
    const files = await writeAgentFiles(folder, agents, options.force ?? false)
    if (options.json) {
      return print(JSON.stringify(files.map(({ id, path, state }) => ({ id, file: path, state }))))
    }
    const lines = files.map(({ path, state }) => `${state.padEnd(7)}  ${toVisible(path)}`)
    print(lines.length === 0 ? 'This key has no agents.' : lines.join('\n'))
  })
}

export function remove(id: string, options: AgentOptions & { yes?: boolean }): Promise<void> {
  return withAgents(options.key, async (access) => {
    const { row } = await getAgent(access.deps, access.tenantId, id)
    if (!options.yes) {
      throw new StartupError(
        `This deletes "${row.name}" (${id}) and its key and cannot be undone. Add --yes to confirm.`,
      )
    }
    const deps = {
      ...(await loadWriteDeps(access)),
      onAgentDeleted: (tenant: string, agentId: string) => deleteConversationsOf(access, tenant, agentId),
    }
    await deleteAgent(deps, commandActor(), access.tenantId, id)
    printResult(options.json ?? false, { id, deleted: true }, `deleted ${id}`)
  })
}

async function deleteConversationsOf(
  { deps, config }: AgentAccess,
  tenant: string,
  agentId: string,
): Promise<void> {
  await withConversations({ db: deps.db, config }, async (storage, data) => {
    const database = await storage.find()
    if (database === undefined) return
    await deleteAgentConversations(database, { clock: deps.clock, data }, { tenant, agentId })
  })
}

/** Calls `run` with access to the agents of the given parent key, or of the only active one. */
export function withAgents(
  key: string | undefined,
  run: (access: AgentAccess) => Promise<void>,
): Promise<void> {
  return withDatabase(async (db, config, clock) => {
    const tenantId = await chooseParentKey(db, key)
    const base = createDeps(db, clock)
    await run({ deps: { ...base, agents: createAgentDirectory(db, base.clock) }, config, tenantId })
  })
}

/** Loads the secret. Only commands that change agents may call this, because it creates a missing secret. */
export async function loadWriteDeps({ deps, config }: AgentAccess) {
  return { ...deps, config, sealer: await loadSealer(config, deps) }
}

function renderAgent({ row, definition }: Agent) {
  const { id, name, version, created_at, updated_at } = row
  return { id, name, model: definition.model ?? null, version, created_at, updated_at }
}
