/** The processes of the bench: starts them on their cores, reads what they cost, ends them. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { BenchFailure } from './connection.ts'

const root = join(import.meta.dirname, '..', '..')
const startLimitMs = 20_000
const keyLimitMs = 5_000
const stopLimitMs = 10_000
const running = new Set<ChildProcess>()

/** A server process that accepts requests. */
export interface Server {
  readonly port: number
  readonly child: ChildProcess
  /** `performance.now()` when the process was spawned. */
  readonly spawnedMs: number
  /** The first parent key it prints. @throws BenchFailure when it prints none. */
  printedKey(): Promise<string>
  /** The link of its first start, which signs in to the console. @throws BenchFailure when it prints none. */
  printedLink(): Promise<string>
  /** CPU nanoseconds all its threads have used so far. */
  cpuNs(): number
  /** Nanoseconds that its main thread could have worked and had no core to do it on. */
  waitedNs(): number
  /** Resident memory, in KB. */
  residentKb(): number
  /** The most memory that was resident since this was last asked, in KB. */
  highestKb(): number
  /** Ends the process and waits for its end. */
  stop(): Promise<void>
}

/** Puts the bench, its load and its upstream on core 1; servers run on core 0. False when cores cannot be chosen. */
export function takeCores(): boolean {
  if (availableParallelism() < 2) return false
  return spawnSync('taskset', ['-a', '-c', '-p', '1', String(process.pid)]).status === 0
}

/** Begins to watch the machine; the function returned says what share of it (0..1) others have used since. */
export function watchOthers(): () => number {
  const before = readTicks()
  return () => {
    const after = readTicks()
    const others = after.busy - before.busy - (after.own - before.own)
    return Math.max(0, others) / (after.all - before.all)
  }
}

/** Starts the scripted backend, on the bench's own core. */
export function startUpstream(): Promise<Server> {
  return startProcess(process.execPath, ['test/bench/upstream.ts'], {})
}

/** Starts the bare pass-through, on the servers' core. */
export function startBare(upstreamPort: number, isPinned: boolean, folder: string): Promise<Server> {
  const url = `http://127.0.0.1:${upstreamPort}`
  return startOnServerCore(isPinned, ['test/bench/bare.ts', url, folder], {})
}

const unreached = '1000000000'

/** Limits that are on, and too high to be met. */
export const unreachedLimits = {
  PARLEY_RATE_LIMIT_PARENT: unreached,
  PARLEY_RATE_LIMIT_AGENT: unreached,
  PARLEY_RATE_LIMIT_AGENT_ADDRESS: unreached,
  PARLEY_MAX_STREAMS_PARENT: unreached,
  PARLEY_MAX_STREAMS_AGENT: unreached,
  PARLEY_MAX_STREAMS_ADDRESS: unreached,
} as const

/** Starts the service as it is, on the servers' core, with limits on but too high to be met. */
export async function startService(
  upstreamPort: number,
  isPinned: boolean,
  dataDir: string,
): Promise<Server> {
  return startOnServerCore(isPinned, ['src/main.ts', 'serve'], {
    PORT: String(await findFreePort()),
    HOST: '127.0.0.1',
    LOG_LEVEL: 'warn',
    // As `npm start` sets it.
    NODE_COMPILE_CACHE: 'node_modules/.cache/parley',
    PARLEY_DATA_DIR: dataDir,
    PARLEY_BACKEND: 'gateway',
    PARLEY_GATEWAY_URL: `http://127.0.0.1:${upstreamPort}/v1`,
    PARLEY_GATEWAY_API_KEY: 'sk-bench',
    ...unreachedLimits,
  })
}

/** Kills, at once, whatever the bench started and has not stopped. */
export function killAll(): void {
  for (const child of running) child.kill('SIGKILL')
}

function startOnServerCore(isPinned: boolean, args: string[], env: Record<string, string>): Promise<Server> {
  // taskset replaces itself by the server, so the child's id is the server's.
  return isPinned
    ? startProcess('taskset', ['-c', '0', process.execPath, ...args], env)
    : startProcess(process.execPath, args, env)
}

/**
 * Starts a program that prints where it listens. Nothing of the caller's environment reaches it but the search path. With a channel it
 * can be sent messages.
 */
export async function startProcess(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  hasChannel = false,
): Promise<Server> {
  const spawnedMs = performance.now()
  const child = spawn(command, args, {
    cwd: root,
    // No setting of theirs may change the figures.
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
    cpuNs: () => readCpuNs(pid),
    waitedNs: () => Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[1]),
    residentKb: () => readMemoryKb(pid, 'VmRSS'),
    highestKb() {
      const highestKb = readMemoryKb(pid, 'VmHWM')
      // 5 lets the kernel begin the high-water mark anew (proc(5)).
      writeFileSync(`/proc/${pid}/clear_refs`, '5')
      return highestKb
    },
    stop: () => stop(child),
  }
}

/** What a process prints, as it prints it. */
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
    child.once('close', (code) => onEnd(`it ended with ${code}`))
  }

  /** Resolves with the first group of `pattern` as soon as it is printed. @throws BenchFailure when it never is. */
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
      const timer = setTimeout(() => settle(() => fail(`waited ${limitMs} ms`)), limitMs)
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

function readCpuNs(pid: number): number {
  if (!existsSync(`/proc/${pid}/task`)) throw new BenchFailure('The server is gone, or this is not Linux.')
  // schedstat counts nanoseconds run, per thread, where /proc/<pid>/stat counts ticks of 10 ms.
  return readdirSync(`/proc/${pid}/task`)
    .map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'))
    .reduce((total, text) => total + Number.parseInt(text, 10), 0)
}

function readMemoryKb(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1])
}

/** CPU ticks since the machine started: of everybody, of everybody at work, of this process and its ended children. */
function readTicks(): { all: number; busy: number; own: number } {
  const [, ...machine] = (readFileSync('/proc/stat', 'utf8').split('\n', 1)[0] ?? '').split(/ +/).map(Number)
  const all = machine.slice(0, 8).reduce((total, ticks) => total + ticks, 0)
  const [idle = 0, waiting = 0] = machine.slice(3, 5)
  const self = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
    .map(Number)
  // After the name: utime, stime, cutime, cstime are the 12th to 15th.
  const own = self.slice(11, 15).reduce((total, ticks) => total + ticks, 0)
  return { all, busy: all - idle - waiting, own }
}
