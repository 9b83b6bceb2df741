/** Runs `parley` commands and servers in separate processes. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { checkLines } from './log-leaks.ts'

/** The root folder of this checkout. */
export const repository = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Node's compile cache. Set in the environment, because otherwise it would not apply to the process's first
 * file.
 */
const compileCache = join(repository, 'node_modules/.cache/parley')

export interface RunOptions {
  /** The working directory, in which `data` and `.env` are stored. */
  readonly folder: string
  readonly env?: Readonly<Record<string, string>>
  /** A command to run the process with, such as `setpriv …`. */
  readonly wrapper?: readonly string[]
  /** Node's command-line options. */
  readonly nodeOptions?: readonly string[]
  /** The path of another main module; by default this checkout's `src/main.ts`. */
  readonly main?: string
}

export interface ProcessResult {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** A running process and its output so far. */
export interface RunningProcess {
  readonly child: ChildProcess
  readonly pid: number
  readonly stdout: string
  readonly stderr: string
  /** Waits until the output matches; rejects if the process exits first. */
  prints(pattern: RegExp, where?: 'stdout' | 'stderr'): Promise<RegExpExecArray>
  /** Resolves when the process has exited and its output is complete. */
  readonly ended: Promise<ProcessResult>
  kill(signal: NodeJS.Signals): void
}

/** Creates a temporary folder that is removed after the test; returns its path. */
export async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-process-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Starts `parley` with these arguments; it inherits only PATH from the test's environment. */
export function startParley(words: readonly string[], options: RunOptions): RunningProcess {
  const { folder, env = {}, wrapper = [], nodeOptions = [], main = join(repository, 'src/main.ts') } = options
  const [command = '', ...rest] = [...wrapper, process.execPath, ...nodeOptions, main, ...words]
  const child = spawn(command, rest, {
    cwd: folder,
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCache, LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const printed = { stdout: '', stderr: '' }
  for (const where of ['stdout', 'stderr'] as const) {
    child[where].setEncoding('utf8').on('data', (text: string) => {
      printed[where] += text
      child.emit('printed')
    })
  }
  const ended = once(child, 'close').then(([code, signal]): ProcessResult => {
    checkLines(printed.stderr)
    return { code, signal, stdout: printed.stdout, stderr: printed.stderr }
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return {
    child,
    pid: child.pid as number,
    get stdout() {
      return printed.stdout
    },
    get stderr() {
      return printed.stderr
    },
    prints(pattern, where = 'stdout') {
      return new Promise((resolve, reject) => {
        const look = () => {
          const found = pattern.exec(printed[where])
          if (found !== null) resolve(found)
        }
        child.on('printed', look)
        void ended.then(({ stdout, stderr }) =>
          reject(new Error(`the process ended without printing ${pattern}:\n${stdout}\n${stderr}`)),
        )
        look()
      })
    },
    ended,
    kill: (signal) => void child.kill(signal),
  }
}

export function runParley(words: readonly string[], options: RunOptions): Promise<ProcessResult> {
  return startParley(words, options).ended
}

export interface RunningServer extends RunningProcess {
  readonly url: string
  /** The parent key that this start printed, if any. */
  readonly key: string | undefined
  /** Stops the server gracefully and waits until it has exited. */
  stop(): Promise<ProcessResult>
  /** Kills the server and waits until it has exited. */
  crash(): Promise<ProcessResult>
}

const printedKey = /svc_[0-9A-Za-z]{61}/

/** Matches the sign-in link that the first start prints. */
export const printedLink = /(http:\S+\/console\/sign-in#[\w-]{43})\n/

/** Starts `parley serve` on a free port and waits until it accepts requests. */
export async function startServer(options: RunOptions): Promise<RunningServer> {
  const running = startParley(['serve'], { ...options, env: { PORT: '0', ...options.env } })
  const [, url = ''] = await running.prints(/listening on (http:\S+)\n/)
  const end = (signal: NodeJS.Signals) => {
    running.kill(signal)
    return running.ended
  }
  return Object.assign(running, {
    url,
    key: printedKey.exec(running.stdout)?.[0],
    stop: () => end('SIGTERM'),
    crash: () => end('SIGKILL'),
  })
}

/** Sends a request; returns the status and the body, which is parsed if it is JSON. */
export async function callServer(
  url: string,
  method: string,
  path: string,
  key?: string,
  body?: object,
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
): Promise<{ status: number; body: any }> {
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text }
}

/** Calls `ask` until it returns `wanted`, or for about 30 seconds; returns its last result. */
export async function eventually<T>(ask: () => Promise<T>, wanted: T): Promise<T> {
  let answer = await ask()
  for (let tries = 0; answer !== wanted && tries < 300; tries++) {
    await setTimeout(100)
    answer = await ask()
  }
  return answer
}
