/** The `agents apply` command: makes a key's agents what files say, once they were all read and the changes shown. */
import { createAgent, listAgents, openAgentKey, replaceAgent } from '../agents/agents.ts'
import type { Agent } from '../agents/directory.ts'
import type { Deps } from '../deps.ts'
import { ServiceError } from '../errors.ts'
import { StartupError } from '../startup-error.ts'
import { readDefinitionFiles } from './agent-files.ts'
import { type Change, type Plan, planChanges, renderPlan } from './agent-plan.ts'
import { type AgentOptions, toWriter, withAgents } from './agent-verbs.ts'
import { print, toVisible } from './output.ts'

type Writer = Pick<Deps, 'db' | 'clock' | 'random' | 'nextPosition' | 'sealer' | 'keys' | 'agents'>

/** What `agents apply` takes beside the path. */
export interface ApplyOptions extends AgentOptions {
  readonly yes?: boolean
  readonly showKeys?: boolean
}

/** A change, and the agent that came of it when it was made. */
interface Outcome {
  readonly change: Change
  readonly written: Agent | undefined
  /** Of a new agent, where it is to be shown. */
  readonly agentKey: string | undefined
}

/**
 * Shows the plan and, with `yes`, carries it out.
 * @throws StartupError before the first write when a file is no definition, or it is not clear which agent it is for.
 */
export function apply(path: string, options: ApplyOptions): Promise<void> {
  return withAgents(options.key, async (work) => {
    const files = await readDefinitionFiles(path)
    const { agents } = await listAgents(work.deps, work.tenantId, { order: 'asc' })
    const plan = planChanges(files, agents)
    const isNeeded = plan.changes.some(({ action }) => action !== 'same')
    const isApplied = isNeeded && options.yes === true
    if (!options.json) print(renderPlan(plan))
    const outcomes = isApplied
      ? await carryOut(await toWriter(work), work.tenantId, plan, options)
      : plan.changes.map((change): Outcome => ({ change, written: undefined, agentKey: undefined }))
    if (options.json) return print(JSON.stringify(renderOutcomes(plan, outcomes, isApplied)))
    if (!isNeeded) return print('Nothing has to change.')
    if (!isApplied) return print('Nothing was changed; add --yes to do it.')
    print(outcomes.flatMap(renderOutcome).join('\n'))
  })
}

/** Makes the changes in order; an agent that somebody changed since it was read is left as it is, and the rest with it. */
async function carryOut(
  deps: Writer,
  tenantId: string,
  { changes }: Plan,
  { showKeys = false }: ApplyOptions,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const change of changes) {
    try {
      const written = await makeChange(deps, tenantId, change)
      const isShown = showKeys && written !== undefined && change.action === 'create'
      outcomes.push({ change, written, agentKey: isShown ? openAgentKey(deps, written) : undefined })
    } catch (cause) {
      const done = outcomes.flatMap((one) => renderOutcome({ ...one, agentKey: undefined })).join(', ')
      throw cause instanceof ServiceError
        ? new StartupError(
            `${toVisible(change.file.path)}: ${cause.message} Before that: ${done === '' ? 'nothing was changed' : done}.`,
            { cause },
          )
        : cause
    }
  }
  return outcomes
}

async function makeChange(deps: Writer, tenantId: string, change: Change): Promise<Agent | undefined> {
  const { action, file } = change
  if (action === 'same') return undefined
  if (action === 'create') return createAgent(deps, tenantId, file.text)
  const { id, version } = change.agent.row
  return replaceAgent(deps, tenantId, id, file.text, `"${version}"`)
}

function renderOutcome({ change, written, agentKey }: Outcome): string[] {
  if (written === undefined) return []
  const verb = change.action === 'create' ? 'created' : 'updated'
  return [`${verb} ${written.row.id}${agentKey === undefined ? '' : ` ${agentKey}`}`]
}

function renderOutcomes({ untouched }: Plan, outcomes: readonly Outcome[], isApplied: boolean) {
  return {
    applied: isApplied,
    files: outcomes.map(({ change, written, agentKey }) => ({
      file: change.file.path,
      action: change.action,
      id: change.action === 'create' ? (written?.row.id ?? null) : change.agent.row.id,
      name: change.file.name,
      ...(change.action === 'update' && { diff: change.diff }),
      ...(agentKey !== undefined && { agent_key: agentKey }),
    })),
    untouched: untouched.map(({ row: { id, name } }) => ({ id, name })),
  }
}
