/** The package as its users have it: built, packed, and installed into an empty project. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { repository } from './process.ts'

const run = promisify(execFile)

export interface InstalledPackage {
  /** The project's folder. */
  readonly folder: string
  /** The paths in the tarball. */
  readonly files: readonly string[]
  readonly sizeBytes: number
  /** Runs a program in the project to its end; answers what it printed. @throws Error when it fails. */
  run(program: string, ...words: readonly string[]): Promise<string>
  /** Writes a file into the project. */
  write(name: string, text: string): Promise<void>
  remove(): Promise<void>
}

/** What the project's own pages and types come from. */
const guests = ['react', 'react-dom', '@types/react', '@types/node']

/** Only what programs need anywhere: of what `npm test` tells its children npm would take this repository for the project. */
const kept =
  /^(PATH|HOME|TMPDIR|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|npm_config_(registry|cache|userconfig|globalconfig))$/i

/** Builds and installs once; whoever asks for it removes it. */
export async function installPackage(): Promise<InstalledPackage> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-package-'))
  const own = Object.entries(process.env).filter(([name]) => kept.test(name))
  const path = [dirname(process.execPath), process.env.PATH].join(delimiter)
  const env = { ...Object.fromEntries(own), PATH: path }
  const runHere = async (program: string, ...words: readonly string[]) =>
    (await run(program, words, { cwd: folder, env, maxBuffer: 16 * 1024 ** 2 })).stdout
  const write = (name: string, text: string) => writeFile(join(folder, name), text)
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    await runHere(process.execPath, join(repository, 'scripts/build-package.ts'))
    const packing = ['pack', join(repository, 'dist/package'), '--json', '--pack-destination', folder]
    const [packed] = Object.values(JSON.parse(await runHere('npm', ...packing))) as Packed[]
    if (packed === undefined) throw new Error('nothing was packed')
    await write('package.json', '{ "name": "empty", "private": true, "type": "module" }')
    const words = [
      'install',
      '--prefer-offline',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--loglevel=error',
    ]
    await runHere('npm', ...words, `./${packed.filename}`, ...(await Promise.all(guests.map(nameVersion))))
    const files = packed.files.map(({ path }) => path)
    return { folder, files, sizeBytes: packed.size, run: runHere, write, remove }
  } catch (error) {
    await remove()
    throw error
  }
}

interface Packed {
  readonly filename: string
  readonly size: number
  readonly files: readonly { readonly path: string }[]
}

/** The version that is here already: it is in npm's cache. */
async function nameVersion(name: string): Promise<string> {
  const text = await readFile(join(repository, 'node_modules', name, 'package.json'), 'utf8')
  return `${name}@${(JSON.parse(text) as { version: string }).version}`
}
