/** Starts the scripted model provider in a separate process, and reads its request log. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { SeenRequest } from './upstream.ts'

export type { SeenRequest }

/** A running scripted model provider; upstream.ts documents its directives. */
export interface Upstream {
  /** The provider's URL without a path. */
  readonly origin: string
  /** The base URL of its API, which ends in `/v1`. */
  readonly url: string
  readonly process: ChildProcess
  /** Lists the requests so far, oldest first. */
  listRequests(): Promise<SeenRequest[]>
  /** Waits for a request whose JSON body contains `text`. */
  waitForRequest(text: string): Promise<SeenRequest>
  /** Waits for a request to a path. */
  waitForPath(path: string): Promise<SeenRequest>
  /** Waits until the request's response is complete or its connection has closed. */
  waitForEnd(id: number): Promise<SeenRequest>
  /** Waits until the client has blocked the response for `ms` milliseconds, or the request has ended. */
  waitForStall(id: number, ms: number): Promise<SeenRequest>
  /** Sets the directives for the next `times` requests to a path; by default for all. */
  script(path: string, text: string, times?: number): Promise<void>
  /** Clears the request log, the scripts and the counters. */
  clear(): Promise<void>
  stop(): Promise<void>
}

/** Starts a provider on a free loopback port. */
export async function startUpstream(): Promise<Upstream> {
  const program = fileURLToPath(new URL('./upstream.ts', import.meta.url))
  const child = fork(program, [], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    execArgv: [],
  })
  const origin = `http://127.0.0.1:${await readPort(child)}`
  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await fetch(`${origin}${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return answer.json()
  }
  return {
    origin,
    url: `${origin}/v1`,
    process: child,
    listRequests: () => ask('GET', '/__log'),
    waitForRequest: (text) => ask('GET', `/__log/wait?text=${encodeURIComponent(text)}`),
    waitForPath: (path) => ask('GET', `/__log/wait?path=${encodeURIComponent(path)}`),
    waitForEnd: (id) => ask('GET', `/__log/wait-closed?id=${id}`),
    waitForStall: (id, ms) => ask('GET', `/__log/wait-stalled?id=${id}&ms=${ms}`),
    script: async (path, text, times) => void (await ask('PUT', '/__script', { path, text, times })),
    clear: async () => void (await ask('DELETE', '/__log')),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** The provider that all test files of a worker share. */
let shared: Promise<Upstream> | undefined

/** Returns the worker's shared provider after clearing it; tests must not stop it. */
export async function shareUpstream(): Promise<Upstream> {
  shared ??= startUpstream()
  const upstream = await shared
  await upstream.clear()
  return upstream
}

async function readPort(child: ChildProcess): Promise<number> {
  let printed = ''
  for await (const text of child.stdout ?? []) {
    printed += text
    const port = /listening (\d+)\n/.exec(printed)?.[1]
    if (port !== undefined) {
      child.stdout?.resume()
      return Number(port)
    }
  }
  throw new Error(`the upstream did not start: ${printed}`)
}
