/** Reads and writes a folder of agent definition files. */
import { mkdir, readdir, readFile, stat, unlink, writeFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { DefinitionText } from '../../agents/agents.ts'
import type { Agent } from '../../agents/cache.ts'
import { type DefinitionFormat, parseDefinition } from '../../agents/definition.ts'
import { ServiceError, StartupError } from '../../lib/errors.ts'
import { toVisible } from '../output.ts'

const LONGEST_SLUG = 60
const formats: Readonly<Record<string, DefinitionFormat | undefined>> = {
  '.yaml': 'yaml',
  '.yml': 'yaml',
  '.md': 'markdown',
  '.markdown': 'markdown',
}

export interface DefinitionFile {
  readonly path: string
  /** The agent id in the file name, as `agents export` writes it; undefined if the name contains no id. */
  readonly agentId: string | undefined
  readonly name: string
  readonly text: DefinitionText
}

function fileNameOf({ row }: Agent): string {
  const slug = row.name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, LONGEST_SLUG)
    .replace(/^-|-$/g, '')
  return `${slug === '' ? '' : `${slug}.`}${row.id}${row.format === 'yaml' ? '.yaml' : '.md'}`
}

/**
 * Reads one definition file, or all files in a folder in name order. Reports every invalid file in one error.
 */
export async function readDefinitionFiles(path: string): Promise<DefinitionFile[]> {
  const read = await Promise.all((await listPaths(path)).map(readDefinitionFile))
  const faults = read.filter((outcome) => typeof outcome === 'string')
  if (faults.length === 0) return read.filter((outcome) => typeof outcome !== 'string')
  throw new StartupError(['Nothing was changed. These files contain errors:', ...faults].join('\n  '))
}

async function listPaths(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) {
    if (formatOf(path) !== undefined) return [path]
    throw new StartupError(
      `${toVisible(path)} is not a definition file; its name must end in .yaml, .yml or .md.`,
    )
  }
  const names = (await readdir(path)).filter((name) => !name.startsWith('.') && formatOf(name) !== undefined)
  if (names.length > 0) return names.sort().map((name) => join(path, name))
  throw new StartupError(`${toVisible(path)} contains no files whose names end in .yaml, .yml or .md.`)
}

async function readDefinitionFile(path: string): Promise<DefinitionFile | string> {
  const format = formatOf(path) ?? 'yaml'
  try {
    // Preserves a byte order mark, because the text is stored unchanged.
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    const yaml = decoder.decode(await readFile(path))
    const { name } = parseDefinition(yaml, format)
    return { path, agentId: agentIdIn(path), name, text: { yaml, format } }
  } catch (error) {
    return `${toVisible(path)}: ${faultOf(error)}`
  }
}

function faultOf(error: unknown): string {
  if (error instanceof ServiceError) return error.message
  if (error instanceof TypeError) return 'The file must be encoded in UTF-8.'
  if (error instanceof Error && 'syscall' in error) return error.message
  throw error
}

/**
 * Writes one file per agent, and deletes files of these agents that have outdated names. Without `isForced`,
 * writes nothing if it would overwrite different content or delete a file.
 */
export async function writeAgentFiles(folder: string, agents: readonly Agent[], isForced: boolean) {
  await mkdir(folder, { recursive: true })
  const entries = await readdir(folder)
  const plans = await Promise.all(agents.map((agent) => planFile(folder, entries, agent)))
  const conflicts = plans.flatMap(({ path, state, others }) =>
    state === 'other' ? [path, ...others] : others,
  )
  if (conflicts.length > 0 && !isForced) {
    const heading = 'Nothing was written. With --force, these files would be overwritten or deleted:'
    throw new StartupError([heading, ...conflicts.map(toVisible)].join('\n  '))
  }
  for (const { agent, path, state, others } of plans) {
    if (state !== 'same') await writeFile(path, agent.row.source)
    for (const other of others) await unlink(other)
  }
  return plans.map(({ agent: { row }, path, state }) => ({
    id: row.id,
    path,
    state: state === 'same' ? 'same' : 'written',
  }))
}

async function planFile(folder: string, entries: readonly string[], agent: Agent) {
  const name = fileNameOf(agent)
  const path = join(folder, name)
  const others = entries.filter((entry) => entry !== name && agentIdIn(entry) === agent.row.id)
  const isThere = entries.includes(name)
  const isSame = isThere && (await readFile(path)).equals(Buffer.from(agent.row.source))
  const state = isSame ? ('same' as const) : isThere ? ('other' as const) : ('missing' as const)
  return { agent, path, state, others: others.map((entry) => join(folder, entry)) }
}

function agentIdIn(path: string): string | undefined {
  return /(?:^|[^0-9A-Za-z])(agent-[0-9A-Za-z]{20})\.(?:ya?ml|md|markdown)$/i.exec(path)?.[1]
}

function formatOf(path: string): DefinitionFormat | undefined {
  return formats[extname(path).toLowerCase()]
}
