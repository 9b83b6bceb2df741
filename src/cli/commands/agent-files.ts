/** Agent definitions as files in a folder: what they are called, how they are read and written. */
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

/** A file with a valid definition. */
export interface DefinitionFile {
  readonly path: string
  /** The agent its name speaks of, as `exportAgents` names files. */
  readonly agentId: string | undefined
  readonly name: string
  readonly text: DefinitionText
}

/** One agent's file after an export. */
export interface ExportedFile {
  readonly id: string
  readonly path: string
  readonly state: 'written' | 'same'
}

/** The file of an agent: its name in plain letters, its id, and what it is written in. */
export function fileNameOf({ row }: Agent): string {
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
 * Reads the definition files of a folder in the order of their names, or the one file.
 * @throws StartupError naming every file at fault, or when there is none at all.
 */
export async function readDefinitionFiles(path: string): Promise<DefinitionFile[]> {
  const read = await Promise.all((await listPaths(path)).map(readDefinitionFile))
  const faults = read.filter((outcome) => typeof outcome === 'string')
  if (faults.length === 0) return read.filter((outcome) => typeof outcome !== 'string')
  throw new StartupError(['Nothing was changed, because of', ...faults].join('\n  '))
}

async function listPaths(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) {
    if (formatOf(path) !== undefined) return [path]
    throw new StartupError(`${toVisible(path)} is no definition file: their names end in .yaml, .yml or .md.`)
  }
  const names = (await readdir(path)).filter((name) => !name.startsWith('.') && formatOf(name) !== undefined)
  if (names.length > 0) return names.sort().map((name) => join(path, name))
  throw new StartupError(`There is no file in ${toVisible(path)} whose name ends in .yaml, .yml or .md.`)
}

/** The file, or what is wrong with it. */
async function readDefinitionFile(path: string): Promise<DefinitionFile | string> {
  const format = formatOf(path) ?? 'yaml'
  try {
    // The mark at the start of a file is kept: the text is stored as it is.
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
  if (error instanceof TypeError) return 'The file is not written in UTF-8.'
  if (error instanceof Error && 'syscall' in error) return error.message
  throw error
}

/**
 * Writes one file per agent; a file that is there with other content, or for the same agent under another name, is replaced only
 * with `isForced`.
 * @throws StartupError naming such files, before anything is written.
 */
export async function writeAgentFiles(
  folder: string,
  agents: readonly Agent[],
  isForced: boolean,
): Promise<ExportedFile[]> {
  await mkdir(folder, { recursive: true })
  const entries = await readdir(folder)
  const plans = await Promise.all(agents.map((agent) => planFile(folder, entries, agent)))
  const inTheWay = plans.flatMap(({ path, state, others }) =>
    state === 'other' ? [path, ...others] : others,
  )
  if (inTheWay.length > 0 && !isForced) {
    const heading = 'Nothing was written, because these files say something else (--force replaces them):'
    throw new StartupError([heading, ...inTheWay.map(toVisible)].join('\n  '))
  }
  const exported: ExportedFile[] = []
  for (const { agent, path, state, others } of plans) {
    if (state !== 'same') await writeFile(path, agent.row.source)
    for (const other of others) await unlink(other)
    exported.push({ id: agent.row.id, path, state: state === 'same' ? 'same' : 'written' })
  }
  return exported
}

/** What is in the folder already where an agent's file goes, and under other names. */
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
