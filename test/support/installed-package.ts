/** Builds and packs the npm package, and installs it in an empty project. */
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
  /** The paths of all files in the tarball. */
  readonly files: readonly string[]
  readonly sizeBytes: number
  /** Runs a program in the project; returns its standard output. @throws Error if it fails. */
  run(program: string, ...words: readonly string[]): Promise<string>
  /** Writes a file to the project. */
  write(name: string, text: string): Promise<void>
  remove(): Promise<void>
}

/** Packages that the test project needs for its pages and types. */
const guests = ['react', 'react-dom', '@types/react', '@types/node']

/** The environment variables to pass on; npm's own variables would direct npm to this repository. */
const kept =
  /^(PATH|HOME|TMPDIR|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|npm_config_(registry|cache|userconfig|globalconfig))$/i

/** Builds and installs the package; the caller must remove the project. */
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
    if (packed === undefined) throw new Error('npm packed nothing')
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

/**
 * Returns the package's name with the version that this repository uses, because npm's cache contains that
 * version.
 */
async function nameVersion(name: string): Promise<string> {
  const text = await readFile(join(repository, 'node_modules', name, 'package.json'), 'utf8')
  return `${name}@${(JSON.parse(text) as { version: string }).version}`
}
