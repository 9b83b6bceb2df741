/** Runs a Redis server for a test. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import { findFreePort } from './free-port.ts'
import { makeFolder } from './process.ts'
import { getProgram } from './programs.ts'

/** Raises the server's priority, because replicas wait only 100 ms for Redis. */
function favour({ pid }: ChildProcess): void {
  try {
    setPriority(pid as number, -15)
  } catch {
    // Only root can raise the priority.
  }
}

/** The user id for Redis if the tests run as root. */
const NOBODY = 65_534

export interface RedisServer {
  readonly url: string
  /** A client that the test can use. */
  readonly client: Redis
  /** Kills the server, which loses its data. */
  kill(): Promise<void>
  /** Pauses or continues the process; its connections stay open. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void
  /** Starts the server again on the same port. */
  start(): Promise<void>
}

/** Starts a server that does not write to disk, and stops it when the test ends. */
export async function startRedis(): Promise<RedisServer> {
  const folder = await makeFolder()
  const isRoot = process.getuid?.() === 0
  if (isRoot) await chown(folder, NOBODY, NOBODY)
  const asUser = isRoot ? ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : []
  const port = await findFreePort()
  const url = `redis://127.0.0.1:${port}/0`
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const [command = '', ...words] = [...asUser, getProgram('redis'), ...settings]
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => 50 })
  client.on('error', () => {})
  let child: ChildProcess | undefined

  async function start(): Promise<void> {
    const started = spawn(command, words, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
    child = started
    favour(started)
    let said = ''
    await new Promise<void>((resolve, reject) => {
      started.stdout.setEncoding('utf8').on('data', (text: string) => {
        said += text
        if (said.includes('Ready to accept connections')) resolve()
      })
      started.once('exit', () => reject(new Error(`Redis did not start:\n${said}`)))
    })
  }

  async function kill(): Promise<void> {
    const ending = child
    child = undefined
    if (ending === undefined) return
    const exited = once(ending, 'exit')
    ending.kill('SIGKILL')
    await exited
  }

  await start()
  onTestFinished(async () => {
    client.disconnect()
    await kill()
  })
  return { url, client, kill, signal: (name) => void child?.kill(name), start }
}
