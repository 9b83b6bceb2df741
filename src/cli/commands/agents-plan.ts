/** Compares definition files with the agents of a parent key, and renders the changes as text. */
import { diffArrays } from 'diff'
import { StartupError } from '../../lib/errors.ts'
import { toVisible } from '../output.ts'
import type { DefinitionFile } from './agent-files.ts'
import type { AgentSummary, AgentTarget, StoredAgent } from './agent-target.ts'

const MOST_DIFF_LINES = 20

export type Change =
  | { readonly action: 'create'; readonly file: DefinitionFile }
  | {
      readonly action: 'update'
      readonly file: DefinitionFile
      readonly agent: StoredAgent
      readonly diff: readonly string[]
    }
  | { readonly action: 'same'; readonly file: DefinitionFile; readonly agent: StoredAgent }

export interface Plan {
  readonly changes: readonly Change[]
  readonly untouched: readonly AgentSummary[]
}

/**
 * Matches each file to an agent by the id in the file name, otherwise by the agent's name if it is unique.
 */
export async function planChanges(
  files: readonly DefinitionFile[],
  target: Pick<AgentTarget, 'list' | 'read'>,
): Promise<Plan> {
  const agents = await target.list()
  const matches = files.map((file) => ({ file, agent: findAgentFor(file, agents) }))
  assertOneFileEach(matches)
  const changes: Change[] = []
  for (const { file, agent } of matches)
    changes.push(
      agent === undefined ? { action: 'create', file } : toChange(file, await target.read(agent.id)),
    )
  const touched = new Set(matches.map(({ agent }) => agent?.id))
  return { changes, untouched: agents.filter(({ id }) => !touched.has(id)) }
}

interface Match {
  readonly file: DefinitionFile
  readonly agent: AgentSummary | undefined
}

function findAgentFor(file: DefinitionFile, agents: readonly AgentSummary[]): AgentSummary | undefined {
  const agent = agents.find(({ id }) => id === file.agentId)
  if (agent !== undefined) return agent
  const namesakes = agents.filter(({ name }) => name === file.name)
  if (namesakes.length <= 1) return namesakes[0]
  const ids = namesakes.map(({ id }) => id).join(', ')
  throw new StartupError(
    `${toVisible(file.path)}: several agents are named "${file.name}" (${ids}). Add the id of one of them before the file extension, as \`parley agents export\` does.`,
  )
}

function toChange(file: DefinitionFile, agent: StoredAgent): Change {
  const { source, format } = agent
  if (source === file.text.yaml && format === file.text.format) return { action: 'same', file, agent }
  return { action: 'update', file, agent, diff: listChangedLines(source, file.text.yaml) }
}

/**
 * Maximum number of changed lines in a diff. If there are more, all lines are listed as changed, because
 * computing the diff would take seconds.
 */
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

function assertOneFileEach(matches: readonly Match[]): void {
  const seen = new Map<string, string>()
  for (const { file, agent } of matches) {
    const { path, name } = file
    const whose = agent === undefined ? `a new agent "${name}"` : `the agent ${agent.id}`
    const other = seen.get(whose)
    if (other !== undefined) {
      throw new StartupError(
        `${toVisible(other)} and ${toVisible(path)} both describe ${whose}; remove one of them.`,
      )
    }
    seen.set(whose, path)
  }
}

export function renderPlan({ changes, untouched }: Plan): string {
  return [
    ...changes.flatMap(renderChange),
    ...untouched.map(({ id, name }) => `  unchanged, no file: "${toVisible(name)}" (${toVisible(id)})`),
  ].join('\n')
}

const signs = { create: '+ create', update: '~ update', same: '= same  ' } as const

function renderChange(change: Change): string[] {
  const { action, file } = change
  const id = action === 'create' ? '' : ` (${change.agent.id})`
  const heading = `${signs[action]}  ${toVisible(file.path)}  "${file.name}"${id}`
  if (action !== 'update') return [heading]
  const shown = change.diff.slice(0, MOST_DIFF_LINES).map((line) => `    ${toVisible(line)}`.trimEnd())
  const hidden = change.diff.length - shown.length
  return [heading, ...shown, ...(hidden === 0 ? [] : [`    … and ${hidden} more lines`])]
}
