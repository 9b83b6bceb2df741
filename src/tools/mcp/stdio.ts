/** Runs an MCP server as a child process that ends with the service. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  type JSONRPCMessage,
  ReadBuffer,
  serializeMessage,
  type Transport,
} from '@modelcontextprotocol/client'
import type { Logger } from 'pino'
import type { McpServerConfig } from '../../config/config.ts'
import { within } from '../../lib/timeout.ts'
import { GRACE_MS, MAX_MESSAGE_BYTES } from './messages.ts'
import type { Watchdog } from './watchdog.ts'

type StdioConfig = Extract<McpServerConfig, { kind: 'stdio' }>

const MAX_LOGGED = 2_000

/**
 * Unlike the library's transport, passes on only the configured environment and ends the whole process group.
 */
export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  private readonly config: StdioConfig
  private readonly watchdog: Watchdog
  private readonly log: Logger
  private readonly buffer = new ReadBuffer({ maxBufferSize: MAX_MESSAGE_BYTES })
  private child: ChildProcessWithoutNullStreams | undefined

  constructor(config: StdioConfig, watchdog: Watchdog, log: Logger) {
    this.config = config
    this.watchdog = watchdog
    this.log = log
  }

  async start(): Promise<void> {
    const { command, args, env, cwd } = this.config
    const child = spawn(command, args, { env, cwd, detached: true, stdio: 'pipe', windowsHide: true })
    this.child = child
    child.on('error', (error) => this.onerror?.(error))
    child.stdin.on('error', (error) => this.onerror?.(error))
    child.stdout.on('data', (chunk: Buffer) => this.read(chunk))
    // Stops the program, because the rest of its messages is lost.
    child.stdout.on('error', (error) => this.fail(error))
    child.stderr.on('error', (error) => this.onerror?.(error))
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.log.debug({ stderr: text.slice(0, MAX_LOGGED).trimEnd() }, 'MCP server wrote to stderr')
    })
    child.once('exit', () => {
      this.signal('SIGKILL')
      if (child.pid !== undefined) this.watchdog.release(child.pid)
    })
    child.once('close', () => this.onclose?.())
    await once(child, 'spawn')
    if (child.pid !== undefined) this.watchdog.watch(child.pid)
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.child ?? {}
    if (stdin === undefined || !stdin.writable) throw new Error('the program has closed its input')
    if (!stdin.write(serializeMessage(message)))
      await Promise.race([once(stdin, 'drain'), once(stdin, 'close')])
  }

  /** Closes the input, which asks the program to exit, then sends SIGTERM and SIGKILL. */
  async close(): Promise<void> {
    const { child } = this
    if (child === undefined || child.pid === undefined) return
    child.stdin.end()
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      if (await this.endsWithin(GRACE_MS)) return
      this.signal(signal)
    }
    await this.endsWithin(GRACE_MS)
  }

  private read(chunk: Buffer): void {
    try {
      this.buffer.append(chunk)
    } catch (error) {
      // Stops the program, because the end of an oversized message cannot be found.
      this.fail(error as Error)
    }
    for (let message = this.next(); message !== undefined; message = this.next()) this.onmessage?.(message)
  }

  private fail(error: Error): void {
    this.onerror?.(error)
    this.signal('SIGKILL')
  }

  private next(): JSONRPCMessage | undefined {
    for (;;) {
      try {
        return this.buffer.readMessage() ?? undefined
      } catch (error) {
        this.onerror?.(error as Error)
      }
    }
  }

  private signal(signal: NodeJS.Signals): void {
    const { child } = this
    if (child?.pid === undefined) return
    try {
      if (process.platform === 'win32') child.kill(signal)
      else process.kill(-child.pid, signal)
    } catch {}
  }

  private async endsWithin(ms: number): Promise<boolean> {
    const { child } = this
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return true
    const ended = once(child, 'exit').then(() => true)
    return within(ms, ended, () => false)
  }
}
