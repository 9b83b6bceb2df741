/** Runs or validates the code blocks of a documentation page. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { parseDefinition } from '../../src/agents/definition.ts'
import { parseConfig } from '../../src/config/parse.ts'
import { loadHostModule } from '../../src/server/hooks.ts'
import { callServer, makeFolder, repository, startServer } from './process.ts'

interface CodeBlock {
  readonly language: string
  readonly line: number
  readonly text: string
}

/** The working directory, server URL and environment for a page's code blocks. */
interface Stage {
  readonly folder: string
  readonly url: string
  readonly env: Readonly<Record<string, string>>
}

const languages = ['sh', 'js', 'yaml', 'json'] as const

const fence = /^( *)```(\S*)([^\n]*)\n(.*?)^\1```$/gms

/** Lists a page's sh, js, yaml and json code blocks that are not marked `no-run`. */
export function listCodeBlocks(page: string): CodeBlock[] {
  const source = readFileSync(join(repository, page), 'utf8')
  return [...source.matchAll(fence)].flatMap(
    ({ index, 1: indent, 2: language = '', 3: info = '', 4: body = '' }) => {
      if (/\bno-run\b/.test(info) || !languages.some((known) => known === language)) return []
      const text = body.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
      return [{ language, text, line: source.slice(0, index).split('\n').length }]
    },
  )
}

/** Lists code blocks that are in an unknown language and not marked `no-run`, as `page:line language`. */
export function listUncheckedBlocks(page: string): string[] {
  const source = readFileSync(join(repository, page), 'utf8')
  const known: readonly string[] = [...languages, 'text', '']
  return [...source.matchAll(fence)]
    .filter(({ 2: language = '', 3: info = '' }) => !known.includes(language) && !/\bno-run\b/.test(info))
    .map(({ index, 2: language }) => `${page}:${source.slice(0, index).split('\n').length} ${language}`)
}

/** Starts a server with the mock provider and an agent. */
export async function createStage(): Promise<Stage> {
  const folder = await makeFolder()
  const { url, key = '' } = await startServer({ folder })
  const definition = await readFile(join(repository, 'examples/receptionist.yaml'), 'utf8')
  const { body: agent } = await callServer(url, 'POST', '/v1/agents', key, { yaml: definition })
  await symlink(join(repository, 'examples'), join(folder, 'examples'))
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
  const programs = join(folder, 'programs')
  await mkdir(programs)
  await symlink(process.execPath, join(programs, 'node'))
  await writeFile(join(programs, 'npm'), npmSubstitute)
  await chmod(join(programs, 'npm'), 0o755)
  // Makes curl fail on error responses.
  await writeFile(join(folder, '.curlrc'), 'fail-with-body\n')
  const env = {
    PATH: `${programs}:${process.env.PATH}`,
    HOME: folder,
    CURL_HOME: folder,
    LOG_LEVEL: 'warn',
    PARLEY_MAIN: join(repository, 'src/main.ts'),
    PARENT_KEY: key,
    AGENT_KEY: agent.agent_key,
    AGENT_ID: agent.agent_id,
  }
  return { folder, url, env }
}

/** A replacement for npm whose `start` command does nothing, because the server is already running. */
const npmSubstitute = `#!/bin/sh
[ "$1" = start ] && exit 0
[ "$1" = run ] && shift
[ "$1" = -s ] && shift
if [ "$1" != parley ]; then
  echo "npm $* cannot run here: add no-run to the block" >&2
  exit 1
fi
shift
[ "$1" = -- ] && shift
exec node "$PARLEY_MAIN" "$@"
`

/** @throws Error if a command fails or the block is not valid in its language. */
export async function checkCodeBlock({ language, line, text }: CodeBlock, stage: Stage): Promise<void> {
  const local = text.replaceAll('http://127.0.0.1:3000', stage.url)
  if (language === 'json') JSON.parse(local)
  else if (language === 'yaml') await checkYaml(local, join(stage.folder, `line-${line}.yaml`))
  else if (language === 'js') await runScript(local, join(stage.folder, `line-${line}.mjs`), stage)
  else await runShell(local, stage)
}

/** A value for any secret; the secrets of webhooks must have this format. */
const placeholder = `whsec_${Buffer.alloc(32).toString('base64')}`

async function checkYaml(text: string, path: string): Promise<void> {
  const fields = Object.keys(parse(text))
  if (fields.includes('instructions')) {
    parseDefinition(text, 'yaml')
  } else if (['providers', 'mcp', 'prices', 'webhooks'].some((section) => fields.includes(section))) {
    await writeFile(path, text)
    const references = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => [name, placeholder])
    await parseConfig({ ...Object.fromEntries(references), PARLEY_CONFIG: path })
  } else {
    throw new Error(`neither an agent definition nor a configuration file: ${fields.join(', ')}`)
  }
}

const run = promisify(execFile)
const TIMEOUT_MS = 60_000

/** Runs a script with the variables of the page's shell blocks, or loads a module. */
async function runScript(text: string, path: string, stage: Stage): Promise<void> {
  await writeFile(path, text)
  if (/^export /m.test(text)) await loadHostModule(path)
  else await runShell(`node '${path}'`, stage)
}

/** Runs a shell block; its variables and functions remain set for the page's next blocks. */
async function runShell(text: string, { folder, env }: Stage): Promise<void> {
  const script = `set -aeuo pipefail\nif [ -f .variables ]; then . ./.variables; fi\n${text}\n{ export -p; declare -f; } > .variables\n`
  await run('bash', ['-c', script], { cwd: folder, env, timeout: TIMEOUT_MS })
}
