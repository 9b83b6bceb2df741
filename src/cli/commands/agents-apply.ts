/**
 * Implements `agents apply`, which compares a parent key's agents with definition files and can apply the
 * changes.
 */
import { diffArrays } from 'diff'
import { createAgent, openAgentKey, replaceAgent } from '../../agents/agents.ts'
import type { Agent } from '../../agents/cache.ts'
import { listAllAgents } from '../../agents/list.ts'
import { ServiceError, StartupError } from '../../lib/errors.ts'
import type { Deps } from '../../server/dependencies.ts'
import { commandActor } from '../installation.ts'
import { print, toVisible } from '../output.ts'
import { type DefinitionFile, readDefinitionFiles } from './agent-files.ts'
import { type AgentOptions, loadWriteDeps, withAgents } from './agents.ts'

type WriteDeps = Pick<
  Deps,
  'config' | 'db' | 'clock' | 'random' | 'nextPosition' | 'sealer' | 'keys' | 'agents'
>

interface ApplyOptions extends AgentOptions {
  readonly yes?: boolean
  readonly showKeys?: boolean
}

/** A planned change and, if it was applied, the resulting agent. */
interface Outcome {
  readonly change: Change
  readonly written: Agent | undefined
  /** The key of a new agent; set only with `--show-keys`. */
  readonly agentKey: string | undefined
}

/** Prints the plan and, with `--yes`, applies it. Checks all files before the first write. */
export function apply(path: string, options: ApplyOptions): Promise<void> {
  return withAgents(options.key, async (access) => {
    const files = await readDefinitionFiles(path)
    const agents = await listAllAgents(access.deps, access.tenantId, 'asc')
    const plan = planChanges(files, agents)
    const isNeeded = plan.changes.some(({ action }) => action !== 'same')
    const isApplied = isNeeded && options.yes === true
    if (!options.json) print(renderPlan(plan))
    const outcomes = isApplied
      ? await applyPlan(await loadWriteDeps(access), access.tenantId, plan, options)
      : plan.changes.map((change): Outcome => ({ change, written: undefined, agentKey: undefined }))
    if (options.json) return print(JSON.stringify(renderOutcomes(plan, outcomes, isApplied)))
    if (!isNeeded) return print('All agents are up to date.')
    if (!isApplied) return print('Nothing was changed. Add --yes to make these changes.')
    print(outcomes.flatMap(renderOutcome).join('\n'))
  })
}

/** Applies the changes in order. Stops at the first agent that has changed since it was read. */
async function applyPlan(
  deps: WriteDeps,
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
            `${toVisible(change.file.path)}: ${cause.message} Changes made before the error: ${done === '' ? 'none' : done}.`,
            { cause },
          )
        : cause
    }
  }
  return outcomes
}

async function makeChange(deps: WriteDeps, tenantId: string, change: Change): Promise<Agent | undefined> {
  const { action, file } = change
  if (action === 'same') return undefined
  if (action === 'create') return createAgent(deps, commandActor(), tenantId, file.text)
  const { id, version } = change.agent.row
  return replaceAgent(deps, commandActor(), tenantId, id, file.text, { ifMatch: `"${version}"` })
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

const MOST_DIFF_LINES = 20

type Change =
  | { readonly action: 'create'; readonly file: DefinitionFile }
  | {
      readonly action: 'update'
      readonly file: DefinitionFile
      readonly agent: Agent
      readonly diff: readonly string[]
    }
  | { readonly action: 'same'; readonly file: DefinitionFile; readonly agent: Agent }

interface Plan {
  readonly changes: readonly Change[]
  readonly untouched: readonly Agent[]
}

/** Matches each file to an agent: by the id in the file name, otherwise by the agent's name if it is unique. */
function planChanges(files: readonly DefinitionFile[], agents: readonly Agent[]): Plan {
  const changes = files.map((file) => toChange(file, findAgentFor(file, agents)))
  assertOneFileEach(changes)
  const touched = new Set(changes.map((change) => (change.action === 'create' ? '' : change.agent.row.id)))
  return { changes, untouched: agents.filter(({ row }) => !touched.has(row.id)) }
}

function findAgentFor(file: DefinitionFile, agents: readonly Agent[]): Agent | undefined {
  const agent = agents.find(({ row }) => row.id === file.agentId)
  if (agent !== undefined) return agent
  const namesakes = agents.filter(({ row }) => row.name === file.name)
  if (namesakes.length <= 1) return namesakes[0]
  const ids = namesakes.map(({ row }) => row.id).join(', ')
  throw new StartupError(
    `${toVisible(file.path)}: several agents are named "${file.name}" (${ids}). Add the id of one of them before the file extension, as \`parley agents export\` does.`,
  )
}

function toChange(file: DefinitionFile, agent: Agent | undefined): Change {
  if (agent === undefined) return { action: 'create', file }
  const { source, format } = agent.row
  if (source === file.text.yaml && format === file.text.format) return { action: 'same', file, agent }
  return { action: 'update', file, agent, diff: listChangedLines(source, file.text.yaml) }
}

/** Beyond this many changed lines, computing a diff takes seconds, so all lines are listed as changed. */
const MOST_LINE_EDITS = 2_000

function listChangedLines(before: string, after: string): string[] {
  const [removed, added] = [before.split('\n'), after.split('\n')]
  const changes = diffArrays(removed, added, { maxEditLength: MOST_LINE_EDITS }) ?? [
    { value: removed, removed: true, added: false },
    { value: added, removed: false, added: true },
  ]
  return changes.flatMap((change) => {
    if (change.removed) return change.value.map((line) => `- ${line}`)
    return change.added ? change.value.map((line) => `+ ${line}`) : []
  })
}

function assertOneFileEach(changes: readonly Change[]): void {
  const seen = new Map<string, string>()
  for (const change of changes) {
    const { path, name } = change.file
    const whose = change.action === 'create' ? `a new agent "${name}"` : `the agent ${change.agent.row.id}`
    const other = seen.get(whose)
    if (other !== undefined) {
      throw new StartupError(
        `${toVisible(other)} and ${toVisible(path)} both describe ${whose}; remove one of them.`,
      )
    }
    seen.set(whose, path)
  }
}

function renderPlan({ changes, untouched }: Plan): string {
  return [
    ...changes.flatMap(renderChange),
    ...untouched.map(({ row }) => `  unchanged, no file: "${row.name}" (${row.id})`),
  ].join('\n')
}

const signs = { create: '+ create', update: '~ update', same: '= same  ' } as const

function renderChange(change: Change): string[] {
  const { action, file } = change
  const id = action === 'create' ? '' : ` (${change.agent.row.id})`
  const heading = `${signs[action]}  ${toVisible(file.path)}  "${file.name}"${id}`
  if (action !== 'update') return [heading]
  const shown = change.diff.slice(0, MOST_DIFF_LINES).map((line) => `    ${toVisible(line)}`.trimEnd())
  const hidden = change.diff.length - shown.length
  return [heading, ...shown, ...(hidden === 0 ? [] : [`    … and ${hidden} more lines`])]
}
