/** Sends HTTP requests over raw TCP connections. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import type { TestApp } from './app.ts'

/** An open TCP connection and the bytes received so far. */
export class RawConnection {
  private readonly socket: Socket
  private received = ''
  private hasEnded = false
  private wake: () => void = () => {}

  private constructor(socket: Socket) {
    this.socket = socket
    socket.setEncoding('latin1').on('data', (text) => {
      this.received += text
      this.wake()
    })
    const onEnd = () => {
      this.hasEnded = true
      this.wake()
    }
    socket.on('end', onEnd).on('error', onEnd).on('close', onEnd)
  }

  /** Connects from `localAddress`; the connection is closed when the test ends. */
  static async open(app: Pick<TestApp, 'url'>, localAddress?: string): Promise<RawConnection> {
    const port = Number(new URL(app.url).port)
    const from = localAddress === undefined ? {} : { localAddress }
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, ...from })
    await once(socket, 'connect')
    onTestFinished(() => void socket.destroy())
    return new RawConnection(socket)
  }

  get text(): string {
    return this.received
  }

  send(bytes: string | Buffer): void {
    this.socket.write(bytes)
  }

  /** Half-closes the connection: the server can still send. */
  endSending(): void {
    this.socket.end()
  }

  reset(): void {
    this.socket.resetAndDestroy()
  }

  /** Waits until the received text matches; rejects if the connection closes first. */
  async receives(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.received)) {
      if (this.hasEnded) throw new Error(`the connection ended after ${JSON.stringify(this.received)}`)
      await this.change()
    }
    return this.received
  }

  /** Waits until the server closes the connection; returns the received text. */
  async ends(): Promise<string> {
    while (!this.hasEnded) await this.change()
    return this.received
  }

  private change(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve
    })
  }
}

/** Sends bytes on a new connection; returns the received text when the server closes it. */
export async function exchange(
  app: Pick<TestApp, 'url'>,
  bytes: string | Buffer,
  localAddress?: string,
): Promise<string> {
  const connection = await RawConnection.open(app, localAddress)
  connection.send(bytes)
  return connection.ends()
}

/** Builds a raw request; the caller must add Content-Length. */
export function toRequest(line: string, headers: readonly string[], body = ''): string {
  return `${[`${line} HTTP/1.1`, ...headers].join('\r\n')}\r\n\r\n${body}`
}

/** Parses a raw response, and its body if the body contains a JSON object. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
export function parseRawResponse(answer: string): { status: number; body: any } {
  const [head = '', text = ''] = answer.split('\r\n\r\n')
  // Ignores the chunk sizes around a chunked body.
  const [json] = /\{.*\}/s.exec(text) ?? []
  return { status: Number(head.slice(9, 12)), body: json === undefined ? text : JSON.parse(json) }
}
