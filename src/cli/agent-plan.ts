/** What `agents apply` would change: which file is for which agent, and how the two differ. */
import type { Agent } from '../agents/directory.ts'
import { StartupError } from '../startup-error.ts'
import type { DefinitionFile } from './agent-files.ts'
import { diffLines } from './line-diff.ts'
import { toVisible } from './output.ts'

const MOST_DIFF_LINES = 20

/** What becomes of one file. */
export type Change =
  | { readonly action: 'create'; readonly file: DefinitionFile }
  | {
      readonly action: 'update'
      readonly file: DefinitionFile
      readonly agent: Agent
      /** `- line` and `+ line`. */
      readonly diff: readonly string[]
    }
  | { readonly action: 'same'; readonly file: DefinitionFile; readonly agent: Agent }

/** Every file's change, in the order of the files, and the agents no file is for. */
export interface Plan {
  readonly changes: readonly Change[]
  readonly untouched: readonly Agent[]
}

/**
 * Finds each file's agent: by the id in its name, else by the agent's name where only one has it.
 * @throws StartupError when that is not clear.
 */
export function planChanges(files: readonly DefinitionFile[], agents: readonly Agent[]): Plan {
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
    `${toVisible(file.path)}: several agents are called "${file.name}" (${ids}); put the id of the right one before the ending of the file's name, as \`parley agents export\` does.`,
  )
}

function toChange(file: DefinitionFile, agent: Agent | undefined): Change {
  if (agent === undefined) return { action: 'create', file }
  const { source, format } = agent.row
  if (source === file.text.yaml && format === file.text.format) return { action: 'same', file, agent }
  return { action: 'update', file, agent, diff: diffLines(source, file.text.yaml) }
}

/** Of two files for one agent the second would undo the first; two new ones of one name could not be told apart later. */
function assertOneFileEach(changes: readonly Change[]): void {
  const seen = new Map<string, string>()
  for (const change of changes) {
    const { path, name } = change.file
    const whose = change.action === 'create' ? `a new agent "${name}"` : `the agent ${change.agent.row.id}`
    const other = seen.get(whose)
    if (other !== undefined) {
      throw new StartupError(`${toVisible(other)} and ${toVisible(path)} are both for ${whose}; keep one.`)
    }
    seen.set(whose, path)
  }
}

/** The plan for people. */
export function renderPlan({ changes, untouched }: Plan): string {
  return [
    ...changes.flatMap(renderChange),
    ...untouched.map(({ row }) => `  untouched, without a file: "${row.name}" (${row.id})`),
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
