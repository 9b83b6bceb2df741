/**
 * The npm packages of a checkout: which of them a command needs, whether they are there, and how they are installed (ADR 0041).
 * Plain JavaScript that Node 20 understands, because it runs before anything is installed.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))
export const isWindows = process.platform === 'win32'

const packagesFolder = join(root, 'node_modules')
/** Written last after a trimmed installation; npm deletes it together with `node_modules`. */
const trimmedMark = join(packagesFolder, '.trimmed')
const modelFolder = join(root, 'packages/in-process')
const modelLink = join(packagesFolder, 'node-llama-cpp')

const start = [
  { folder: '.', field: 'dependencies' },
  { folder: 'client', field: 'dependencies' },
]
const quickTests = [...start, { folder: '.', field: 'devDependencies' }]

/** Each group holds the ones before it: the lists of packages in it, and the options of `npm ci` that select them. */
const groups = {
  start: { lists: start, options: ['--omit=dev', '--workspace=client', '--include-workspace-root'] },
  quickTests: {
    lists: quickTests,
    options: ['--include=dev', '--workspace=client', '--include-workspace-root'],
  },
  all: {
    lists: [...quickTests, { folder: 'test', field: 'devDependencies' }],
    options: ['--include=dev'],
  },
}

/** The text of a file, or undefined when there is none. */
export function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}

function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'))
}

/** What npm recorded of its last installation in a folder; it writes that last, so an interrupted installation has none. */
function readInstalled(folder) {
  const record = readIfThere(join(folder, 'node_modules/.package-lock.json'))
  return record && JSON.parse(record).packages
}

/** Whether every installed package has the version that the lock file asks for. */
function isUpToDate(installed, locked) {
  return Object.entries(installed).every(
    ([path, { version }]) => locked[path] === undefined || locked[path].version === version,
  )
}

/** Whether `node_modules` holds the packages of a group as package-lock.json asks for them. */
export function hasPackages(group) {
  const installed = readInstalled(root)
  const locked = readJson(join(root, 'package-lock.json')).packages
  if (installed === undefined || !isUpToDate(installed, locked)) return false
  if (group !== 'start' && existsSync(trimmedMark)) return false
  return groups[group].lists.every(({ folder, field }) =>
    Object.keys(readJson(join(root, folder, 'package.json'))[field] ?? {}).every((name) => {
      const own = `${folder}/node_modules/${name}`
      return (own in locked ? own : `node_modules/${name}`) in installed
    }),
  )
}

/** Runs `npm ci`; no dependency needs an install script, so none may run one. @throws Error when npm fails. */
function runNpm(folder, options) {
  const command = ['ci', '--ignore-scripts', '--include=optional', '--loglevel=error', ...options]
  const npm = spawnSync('npm', command, { cwd: folder, stdio: ['ignore', 2, 2], shell: isWindows })
  if (npm.error) throw new Error(`npm could not be started: ${npm.error.message}`)
  if (npm.status !== 0) throw new Error('npm ci failed; its message stands above.')
}

/** Installs the packages of a group exactly as locked. @throws Error when npm fails. */
export function installPackages(group) {
  runNpm(root, groups[group].options)
  if (group === 'start') trim()
}

/**
 * Deletes what only compilers and debuggers read, which is more than a third of what npm installs: TypeScript (npm takes it for
 * a dependency of `@trpc/server`), the headers of Node, declarations of types, source maps.
 */
function trim() {
  const runtimes = Object.keys(readJson(join(root, 'package.json')).optionalDependencies ?? {})
  const folders = ['typescript', '@typescript', ...runtimes.map((name) => join(name, 'include'))]
  for (const folder of folders) rmSync(join(packagesFolder, folder), { recursive: true, force: true })
  rmSync(join(packagesFolder, '.bin/tsc'), { force: true })
  deleteUnread(packagesFolder)
  writeFileSync(trimmedMark, '')
}

function deleteUnread(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) deleteUnread(path)
    else if (entry.isFile() && /\.(map|d\.[cm]?ts)$/.test(entry.name)) rmSync(path)
  }
}

/** Whether the package that runs models in the server's process is installed, in a folder of its own. */
export function hasModelPackage() {
  const installed = readInstalled(modelFolder)
  return (
    installed !== undefined &&
    isUpToDate(installed, readJson(join(modelFolder, 'package-lock.json')).packages)
  )
}

/** @throws Error when npm fails. */
export function installModelPackage() {
  runNpm(modelFolder, [])
}

/** Whether the server finds that package, or it is not installed at all. */
export function isModelPackageLinked() {
  return existsSync(modelLink) || readInstalled(modelFolder) === undefined
}

/** Leads from where Node looks for packages to the folder of that one; `npm ci` deletes the link. */
export function linkModelPackage() {
  rmSync(modelLink, { recursive: true, force: true })
  symlinkSync('../packages/in-process/node_modules/node-llama-cpp', modelLink, 'junction')
}
