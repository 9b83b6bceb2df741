/** Starts MCP servers in separate processes, and services that use them. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import type { ServiceOptions } from '../../src/server/build.ts'
import type { TestApp } from './app.ts'
import type { ChatHarness } from './chat-harness.ts'
import { writeConfigFile } from './config-file.ts'
import { eventually } from './process.ts'

const program = (name: string) => fileURLToPath(new URL(name, import.meta.url))

export const stdioProgram = program('./mcp-stdio-server.ts')

/** The requests that the HTTP MCP server has received. */
export interface Seen {
  readonly calls: string[]
  readonly cancelled: string[]
  readonly authorizations: string[]
  readonly begun: number
  readonly ended: number
  /** The number of requests that were redirected. */
  readonly moved: number
}

/** An HTTP MCP server in a separate process; see mcp-http-server.ts. */
export interface McpHttpServer {
  readonly origin: string
  readonly url: string
  readonly process: ChildProcess
  seen(): Promise<Seen>
  /** Adds a tool that returns its own name. */
  add(name: string): Promise<void>
  /** Discards all sessions, as a restart would. */
  forget(): Promise<void>
  kill(): Promise<void>
  /** Starts a new process on the same port. */
  restart(more?: readonly string[]): Promise<McpHttpServer>
}

/** Starts a server and stops it when the test ends. */
export async function startMcpHttpServer(words: readonly string[] = []): Promise<McpHttpServer> {
  const child = fork(program('./mcp-http-server.ts'), words, {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    execArgv: [],
  })
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
  onTestFinished(kill)
  const [printed] = (await once(child.stdout ?? child, 'data')) as [Buffer]
  const port = /listening (\d+)/.exec(String(printed))?.[1] ?? ''
  const origin = `http://127.0.0.1:${port}`
  return {
    origin,
    url: `${origin}/mcp`,
    process: child,
    seen: async () => (await fetch(`${origin}/__seen`)).json(),
    add: async (name) => void (await fetch(`${origin}/__add?name=${name}`, { method: 'POST' })),
    forget: async () => void (await fetch(`${origin}/__forget`, { method: 'POST' })),
    kill,
    async restart(more = []) {
      await kill()
      return startMcpHttpServer([...words, '--port', port, ...more])
    },
  }
}

/** Writes a configuration file with these MCP servers; returns the environment that selects it. */
export async function withMcp(servers: object): Promise<Record<string, string>> {
  return { PARLEY_CONFIG: await writeConfigFile(JSON.stringify({ mcp: servers })) }
}

/** Starts a service with these MCP servers, and waits until it has listed the tools. */
export async function startWithMcp(
  harness: ChatHarness,
  servers: object,
  tools: readonly string[],
  options: Omit<ServiceOptions, 'config'> = {},
): Promise<TestApp> {
  const app = await harness.start(await withMcp(servers), { clock: systemClock, ...options })
  await waitForTools(app, tools)
  return app
}

export async function waitForTools(app: TestApp, names: readonly string[]): Promise<void> {
  const { tools } = app.service.deps
  const listed = async () => names.every((name) => tools.list().some((tool) => tool.name === name))
  if (!(await eventually(listed, true)))
    throw new Error(`the only listed tools are ${tools.list().map(({ name }) => name)}`)
}
