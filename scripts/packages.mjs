/**
 * Installs the npm packages that a command needs, and checks whether they are installed (ADR 0041). Plain
 * JavaScript for Node 20, because it runs before anything is installed.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))
export const isWindows = process.platform === 'win32'

const packagesFolder = join(root, 'node_modules')
/** Written when a trimmed installation is complete; npm deletes it together with `node_modules`. */
const trimmedMark = join(packagesFolder, '.trimmed')
const modelFolder = join(root, 'packages/in-process')
const modelLink = join(packagesFolder, 'node-llama-cpp')

const start = [
  { folder: '.', field: 'dependencies' },
  { folder: 'client', field: 'dependencies' },
]
const quickTests = [...start, { folder: '.', field: 'devDependencies' }]

/** The package groups, each including the previous ones, with their dependency lists and `npm ci` options. */
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

/** Returns a file's text, or undefined if the file does not exist. */
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

/**
 * Reads npm's record of an installation. An interrupted installation has no record, because npm writes it
 * last.
 */
function readInstalled(folder) {
  const record = readIfThere(join(folder, 'node_modules/.package-lock.json'))
  return record && JSON.parse(record).packages
}

/** Returns whether every installed package has the version in the lock file. */
function isUpToDate(installed, locked) {
  return Object.entries(installed).every(
    ([path, { version }]) => locked[path] === undefined || locked[path].version === version,
  )
}

/** Returns whether `node_modules` contains a group's packages in the locked versions. */
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

/** Runs `npm ci` without install scripts, because no dependency needs them. @throws Error if npm fails. */
function runNpm(folder, options) {
  const command = ['ci', '--ignore-scripts', '--include=optional', '--loglevel=error', ...options]
  const npm = spawnSync('npm', command, { cwd: folder, stdio: ['ignore', 2, 2], shell: isWindows })
  if (npm.error) throw new Error(`npm could not be started: ${npm.error.message}`)
  if (npm.status !== 0) throw new Error('npm ci failed; see its message above.')
}

/** Installs a group's packages exactly as locked. @throws Error if npm fails. */
export function installPackages(group) {
  runNpm(root, groups[group].options)
  if (group === 'start') trim()
}

/**
 * Deletes files that only compilers and debuggers read: TypeScript (which npm installs for `@trpc/server`),
 * Node's headers, type declarations and source maps. They are more than a third of the installation.
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

/** Returns whether the package for in-process models is installed in its own folder. */
export function hasModelPackage() {
  const installed = readInstalled(modelFolder)
  return (
    installed !== undefined &&
    isUpToDate(installed, readJson(join(modelFolder, 'package-lock.json')).packages)
  )
}

/** Installs the package for in-process models. @throws Error if npm fails. */
export function installModelPackage() {
  runNpm(modelFolder, [])
}

/**
 * Returns true if the package for in-process models is linked, or is not installed and so needs no link.
 */
export function isModelPackageLinked() {
  return existsSync(modelLink) || readInstalled(modelFolder) === undefined
}

/** Links the package for in-process models into `node_modules`; `npm ci` deletes the link. */
export function linkModelPackage() {
  rmSync(modelLink, { recursive: true, force: true })
  symlinkSync('../packages/in-process/node_modules/node-llama-cpp', modelLink, 'junction')
}
