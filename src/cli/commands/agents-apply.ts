/**
 * Implements `agents apply`, which compares a parent key's agents with definition files and can apply the
 * changes. With `--url`, it uses a server's REST API.
 */
import { VersionNote } from '../../agents/schema.ts'
import { ServiceError, StartupError } from '../../lib/errors.ts'
import { print, toVisible } from '../output.ts'
import { readDefinitionFiles } from './agent-files.ts'
import { type AgentTarget, createLocalTarget } from './agent-target.ts'
import { type AgentOptions, withAgents } from './agents.ts'
import { type Change, type Plan, planChanges, renderPlan } from './agents-plan.ts'
import { createRemoteTarget } from './remote-target.ts'

interface ApplyOptions extends AgentOptions {
  readonly yes?: boolean
  readonly showKeys?: boolean
  /** Stored with each new version. */
  readonly note?: string
  /** The URL of a server; without it, the command uses the database. */
  readonly url?: string
}

/** A planned change and its result. */
interface Outcome {
  readonly change: Change
  /** The id of the agent, if the change was made. */
  readonly writtenId: string | undefined
  /** The key of a new agent; set only with `--show-keys`. */
  readonly agentKey: string | undefined
}

export function apply(path: string, options: ApplyOptions): Promise<void> {
  const { url, key, note } = options
  if (note !== undefined) assertNote(note)
  if (url !== undefined) return applyTo(createRemoteTarget(url, key), path, options)
  return withAgents(key, (access) => applyTo(createLocalTarget(access), path, options))
}

function assertNote(note: string): void {
  const problem = VersionNote.safeParse(note).error?.issues[0]?.message
  if (problem !== undefined) throw new StartupError(`--note ${problem}.`)
}

/** Prints the plan and, with `--yes`, applies it. Checks all files before the first write. */
async function applyTo(target: AgentTarget, path: string, options: ApplyOptions): Promise<void> {
  const files = await readDefinitionFiles(path)
  const plan = await planChanges(files, target)
  const isNeeded = plan.changes.some(({ action }) => action !== 'same')
  const isApplied = isNeeded && options.yes === true
  if (!options.json) print(renderPlan(plan))
  const outcomes = isApplied
    ? await applyPlan(target, plan, options)
    : plan.changes.map((change): Outcome => ({ change, writtenId: undefined, agentKey: undefined }))
  if (options.json) return print(JSON.stringify(renderOutcomes(plan, outcomes, isApplied)))
  if (!isNeeded) return print('All agents are up to date.')
  if (!isApplied) return print('Nothing was changed. Add --yes to make these changes.')
  print(outcomes.flatMap(renderOutcome).join('\n'))
}

/**
 * Applies the changes in order. Stops at the first change that fails, for example because the agent has
 * changed since it was read.
 */
async function applyPlan(
  target: AgentTarget,
  { changes }: Plan,
  { showKeys = false, note }: ApplyOptions,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const change of changes) {
    try {
      const { id, agentKey } = await makeChange(target, change, note)
      outcomes.push({ change, writtenId: id, agentKey: showKeys ? agentKey : undefined })
    } catch (cause) {
      const done = outcomes.flatMap((one) => renderOutcome({ ...one, agentKey: undefined })).join(', ')
      throw cause instanceof ServiceError || cause instanceof StartupError
        ? new StartupError(
            `${toVisible(change.file.path)}: ${cause.message} Changes made before the error: ${done === '' ? 'none' : done}.`,
            { cause },
          )
        : cause
    }
  }
  return outcomes
}

async function makeChange(
  target: AgentTarget,
  change: Change,
  note: string | undefined,
): Promise<{ readonly id?: string; readonly agentKey?: string }> {
  const { action, file } = change
  if (action === 'same') return {}
  if (action === 'create') return target.create({ ...file.text, note })
  await target.replace(change.agent, { ...file.text, note })
  return { id: change.agent.id }
}

function renderOutcome({ change, writtenId, agentKey }: Outcome): string[] {
  if (writtenId === undefined) return []
  const verb = change.action === 'create' ? 'created' : 'updated'
  return [`${verb} ${writtenId}${agentKey === undefined ? '' : ` ${agentKey}`}`]
}

function renderOutcomes({ untouched }: Plan, outcomes: readonly Outcome[], isApplied: boolean) {
  return {
    applied: isApplied,
    files: outcomes.map(({ change, writtenId, agentKey }) => ({
      file: change.file.path,
      action: change.action,
      id: change.action === 'create' ? (writtenId ?? null) : change.agent.id,
      name: change.file.name,
      ...(change.action === 'update' && { diff: change.diff }),
      ...(agentKey !== undefined && { agent_key: agentKey }),
    })),
    untouched: untouched.map(({ id, name }) => ({ id, name })),
  }
}
