/** Starts the benchmark's processes on their CPU cores, and reads their CPU time and memory. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readCpuNs, readMainCpuNs, readMemoryKb, resetPeakMemory } from '../support/process-cost.ts'
import { BenchFailure } from './connection.ts'

const root = join(import.meta.dirname, '..', '..')
const startLimitMs = 20_000
const keyLimitMs = 5_000
const stopLimitMs = 10_000
const running = new Set<ChildProcess>()

export interface Server {
  readonly port: number
  readonly child: ChildProcess
  /** The value of `performance.now()` when the process was started. */
  readonly spawnedMs: number
  /** Waits for the first parent key that the server prints. @throws BenchFailure after a timeout. */
  printedKey(): Promise<string>
  /** Waits for the sign-in link that the first start prints. @throws BenchFailure after a timeout. */
  printedLink(): Promise<string>
  /** CPU time of all threads so far, in nanoseconds. */
  cpuNs(): number
  /** CPU time of the main thread so far, in nanoseconds. */
  mainCpuNs(): number
  /** Nanoseconds that the main thread has spent waiting for a CPU core. */
  waitedNs(): number
  /** Resident memory in KB. */
  residentKb(): number
  /** Peak resident memory since the previous call, in KB. */
  highestKb(): number
  /** Stops the process and waits until it has exited. */
  stop(): Promise<void>
}

/** Pins this process to core 1, which leaves core 0 for servers; returns false if that is not possible. */
export function takeCores(): boolean {
  if (availableParallelism() < 2) return false
  return spawnSync('taskset', ['-a', '-c', '-p', '1', String(process.pid)]).status === 0
}

/**
 * Returns a function that returns the share of CPU time (0 to 1) that other programs have used since this
 * call.
 */
export function watchOthers(): () => number {
  const before = readTicks()
  return () => {
    const after = readTicks()
    const others = after.busy - before.busy - (after.own - before.own)
    return Math.max(0, others) / (after.all - before.all)
  }
}

/** Starts the fake model provider on the benchmark's core. */
export function startUpstream(): Promise<Server> {
  return startProcess(process.execPath, ['test/bench/upstream.ts'], {})
}

/** Starts the baseline proxy on the servers' core. */
export function startBare(upstreamPort: number, isPinned: boolean, folder: string): Promise<Server> {
  const url = `http://127.0.0.1:${upstreamPort}`
  return startOnServerCore(isPinned, ['test/bench/bare.ts', url, folder], {})
}

const unreached = '1000000000'

/** Limits that are enabled but too high to be reached. */
export const unreachedLimits = {
  PARLEY_RATE_LIMIT_PARENT: unreached,
  PARLEY_RATE_LIMIT_AGENT: unreached,
  PARLEY_RATE_LIMIT_AGENT_ADDRESS: unreached,
  PARLEY_MAX_STREAMS_PARENT: unreached,
  PARLEY_MAX_STREAMS_AGENT: unreached,
  PARLEY_MAX_STREAMS_ADDRESS: unreached,
} as const

/** Starts Parley on the servers' core, with `unreachedLimits`. */
export async function startService(
  upstreamPort: number,
  isPinned: boolean,
  dataDir: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Server> {
  return startOnServerCore(isPinned, ['src/main.ts', 'serve'], {
    PORT: String(await findFreePort()),
    HOST: '127.0.0.1',
    LOG_LEVEL: 'warn',
    // `npm start` sets the same cache.
    NODE_COMPILE_CACHE: 'node_modules/.cache/parley',
    PARLEY_DATA_DIR: dataDir,
    PARLEY_BACKEND: 'gateway',
    PARLEY_GATEWAY_URL: `http://127.0.0.1:${upstreamPort}/v1`,
    PARLEY_GATEWAY_API_KEY: 'sk-bench',
    ...unreachedLimits,
    ...more,
  })
}

/** Kills all processes that the benchmark has started and not stopped. */
export function killAll(): void {
  for (const child of running) child.kill('SIGKILL')
}

function startOnServerCore(isPinned: boolean, args: string[], env: Record<string, string>): Promise<Server> {
  // `taskset` executes the server in its own process, so the child's id is the server's id.
  return isPinned
    ? startProcess('taskset', ['-c', '0', process.execPath, ...args], env)
    : startProcess(process.execPath, args, env)
}

/** Starts a program and waits for the address that it prints; `env` and PATH are its only variables. */
export async function startProcess(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  hasChannel = false,
): Promise<Server> {
  const spawnedMs = performance.now()
  const child = spawn(command, args, {
    cwd: root,
    // The caller's environment must not affect the results.
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe', ...(hasChannel ? (['ipc'] as const) : [])],
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  const output = new Output(child, args.findLast((arg) => arg.endsWith('.ts')) ?? command)
  const port = Number(await output.find(/listening on http:\/\/\S*?:(\d+)\s/, startLimitMs))
  const pid = child.pid as number
  return {
    port,
    spawnedMs,
    child,
    printedKey: () => output.find(/(svc_[0-9A-Za-z]+)[^0-9A-Za-z]/, keyLimitMs),
    printedLink: () => output.find(/\/sign-in#([\w-]+)\s/, keyLimitMs),
    cpuNs() {
      if (!existsSync(`/proc/${pid}/task`))
        throw new BenchFailure('The server process has ended, or this machine does not run Linux.')
      return readCpuNs(pid)
    },
    mainCpuNs: () => readMainCpuNs(pid),
    waitedNs: () => Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[1]),
    residentKb: () => readMemoryKb(pid, 'VmRSS'),
    highestKb() {
      const highestKb = readMemoryKb(pid, 'VmHWM')
      resetPeakMemory(pid)
      return highestKb
    },
    stop: () => stop(child),
  }
}

class Output {
  private readonly name: string
  private readonly events = new EventEmitter()
  private printed = ''
  private complaints = ''
  private end: string | undefined

  constructor(child: ChildProcess, name: string) {
    this.name = name
    child.stdout?.on('data', (text: Buffer) => {
      this.printed = (this.printed + text.toString()).slice(-10_000)
      this.events.emit('change')
    })
    child.stderr?.on('data', (text: Buffer) => {
      this.complaints = (this.complaints + text.toString()).slice(-1_000)
    })
    const onEnd = (end: string) => {
      this.end = end
      this.events.emit('change')
    }
    child.once('error', (error) => onEnd(error.message))
    child.once('close', (code) => onEnd(`it exited with code ${code}`))
  }

  /** Waits for a match in the output; returns its first group. @throws BenchFailure after `limitMs`. */
  find(pattern: RegExp, limitMs: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        clearTimeout(timer)
        this.events.off('change', look)
        act()
      }
      const fail = (why: string) =>
        reject(new BenchFailure(`${this.name} did not print ${pattern}: ${why}. ${this.complaints}`))
      const look = () => {
        const { end } = this
        const found = pattern.exec(this.printed)?.[1]
        if (found !== undefined) settle(() => resolve(found))
        else if (end !== undefined) settle(() => fail(end))
      }
      const timer = setTimeout(() => settle(() => fail(`no output for ${limitMs} ms`)), limitMs)
      this.events.on('change', look)
      look()
    })
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (!running.has(child)) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const overdue = new AbortController()
  await Promise.race([ended, sleep(stopLimitMs, undefined, { signal: overdue.signal }).catch(() => {})])
  overdue.abort()
  if (!running.has(child)) return
  child.kill('SIGKILL')
  await ended
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

/**
 * Returns the CPU ticks since the machine started: all, busy, and those of this process and its ended
 * children.
 */
function readTicks(): { all: number; busy: number; own: number } {
  const [, ...machine] = (readFileSync('/proc/stat', 'utf8').split('\n', 1)[0] ?? '').split(/ +/).map(Number)
  const all = machine.slice(0, 8).reduce((total, ticks) => total + ticks, 0)
  const [idle = 0, waiting = 0] = machine.slice(3, 5)
  const self = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
    .map(Number)
  // After the process name, utime, stime, cutime and cstime are fields 12 to 15 (see proc(5)).
  const own = self.slice(11, 15).reduce((total, ticks) => total + ticks, 0)
  return { all, busy: all - idle - waiting, own }
}
