/** Parses a Dockerfile and runs its instructions in ordinary folders. */
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile } from 'node:fs/promises'
import { basename, isAbsolute, join, resolve } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** An instruction, with its continuation lines joined. */
export interface Instruction {
  readonly verb: string
  readonly text: string
}

/** A build stage: a `FROM` and the instructions after it. */
export interface Stage {
  readonly name: string | undefined
  readonly image: string
  readonly steps: readonly Instruction[]
}

export function parseDockerfile(text: string): Stage[] {
  const stages: (Stage & { steps: Instruction[] })[] = []
  for (const { verb, text: words } of listInstructions(text)) {
    const [image = '', , name] = words.split(' ')
    if (verb === 'FROM') stages.push({ image, name, steps: [] })
    else stages.at(-1)?.steps.push({ verb, text: words })
  }
  return stages
}

function listInstructions(text: string): Instruction[] {
  const lines = text.replaceAll(/^#.*\n/gm, '').replaceAll(/\s*\\\n\s*/g, ' ')
  return lines
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, verb = '', rest = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? []
      if (verb === '') throw new Error(`not a Dockerfile instruction: ${line}`)
      return { verb, text: rest }
    })
}

/** Returns the text of the stage's last `verb` instruction. */
export function getText({ steps }: Stage, verb: string): string {
  const found = steps.findLast((step) => step.verb === verb)
  if (found === undefined) throw new Error(`there is no ${verb} instruction`)
  return found.text
}

/** Parses the JSON form of an instruction, such as `CMD ["node", "main.js"]`. */
export function readWords(text: string): [string, ...string[]] {
  return JSON.parse(text.slice(text.indexOf('[')))
}

/** Returns the environment variables that the stage's ENV instructions set. */
export function readEnvironment({ steps }: Stage): Record<string, string> {
  const pairs = steps.filter(({ verb }) => verb === 'ENV').flatMap(({ text }) => text.split(/\s+/))
  return Object.fromEntries(pairs.map((pair) => pair.split('=', 2)))
}

/** Returns the names that a `.dockerignore` allows. It must exclude everything else. */
export function listAllowed(text: string): string[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const [first, ...rest] = lines
  if (first !== '*' || rest.some((line) => !/^![\w.-]+$/.test(line))) {
    throw new Error('.dockerignore must start with * and admit plain names with !')
  }
  return rest.map((line) => line.slice(1))
}

export interface Workshop {
  /** The path of the build context. */
  readonly context: string
  /** The folder in which each stage gets a subfolder. */
  readonly folder: string
  /** The environment of RUN commands. */
  readonly env: Readonly<Record<string, string>>
  /** Returns a function to call instead of running `command`, or undefined to run it. */
  insteadOf(command: string): ((folder: string) => Promise<void>) | undefined
}

/** Builds all stages; returns the last stage's root folder. */
export async function buildStages(stages: readonly Stage[], workshop: Workshop): Promise<string> {
  const allowed = listAllowed(await readFile(join(workshop.context, '.dockerignore'), 'utf8'))
  let last = ''
  for (const [index, { name, steps }] of stages.entries()) {
    last = join(workshop.folder, name ?? String(index))
    await mkdir(last)
    let workFolder = '/'
    for (const { verb, text } of steps) {
      if (verb === 'WORKDIR') workFolder = resolve(workFolder, text)
      await mkdir(join(last, workFolder), { recursive: true })
      if (verb === 'COPY') await copy(text, { workshop, allowed, into: join(last, workFolder) })
      if (verb === 'RUN') await runIn(last, workFolder, text, workshop)
    }
  }
  return last
}

async function copy(
  text: string,
  { workshop, allowed, into }: { workshop: Workshop; allowed: readonly string[]; into: string },
): Promise<void> {
  const words = text.split(' ')
  const stage = words[0]?.startsWith('--from=') ? words.shift()?.slice(7) : undefined
  const target = words.pop() ?? ''
  if (isAbsolute(target)) throw new Error(`${target} is not below WORKDIR`)
  for (const source of words) {
    if (stage === undefined && !allowed.includes(source.split('/')[0] as string)) {
      throw new Error(`${source} is excluded by .dockerignore`)
    }
    const from = join(stage === undefined ? workshop.context : join(workshop.folder, stage), source)
    const to = target.endsWith('/') ? join(into, target, basename(source)) : join(into, target)
    // Uses hard links to save space, which is safe because the files are not modified afterwards.
    await mkdir(join(to, '..'), { recursive: true })
    await (stage === undefined ? cp(from, to, { recursive: true }) : run('cp', ['-al', from, to]))
  }
}

/** Runs a command; replaces its absolute paths with paths in the stage's root folder. */
async function runIn(root: string, workFolder: string, text: string, workshop: Workshop): Promise<void> {
  const folder = join(root, workFolder)
  const instead = workshop.insteadOf(text)
  if (instead !== undefined) return instead(folder)
  const command = text.replaceAll(/(?<=^|[\s=])\/(?=\w)/g, `${root}/`)
  const { env } = workshop
  await run('sh', ['-ec', command], { cwd: folder, env, maxBuffer: 10_000_000 })
}
