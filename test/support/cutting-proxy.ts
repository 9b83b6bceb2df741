/** Runs a TCP proxy that breaks connections at chosen positions. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export type Cut = 'reset' | 'end'

export interface CuttingProxyOptions {
  /**
   * Byte counts in ascending order; `onPoint` is called when the clients have sent that many bytes in total.
   */
  readonly points: readonly number[]
  /** Returns how to break all connections at this point, or `go on` to leave them open. */
  onPoint(index: number): Cut | 'go on'
}

const unbroken: CuttingProxyOptions = { points: [], onPoint: () => 'go on' }

export class CuttingProxy {
  private readonly server: Server
  private readonly options: CuttingProxyOptions
  private readonly sockets = new Set<Socket>()
  private target: string | Promise<string>
  private passedBytes = 0
  private next = 0

  private constructor(target: string, options: CuttingProxyOptions) {
    this.target = target
    this.options = options
    this.server = createServer({ pauseOnConnect: true }, (client) => void this.join(client))
  }

  static async open(targetUrl: string, options: CuttingProxyOptions = unbroken): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(targetUrl, options)
    proxy.server.listen(0, '127.0.0.1')
    await once(proxy.server, 'listening')
    return proxy
  }

  /** Stops the proxy and resets every connection. */
  close(): void {
    this.cut('reset')
    this.server.close()
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  /** Number of points that have been reached. */
  get passedPoints(): number {
    return this.next
  }

  /** Forwards new connections to another service; they wait until the promise of its URL resolves. */
  forwardTo(url: Promise<string>): void {
    this.target = url
  }

  /** Breaks all connections; returns how many sockets were open. */
  cut(how: Cut): number {
    const { size } = this.sockets
    for (const socket of this.sockets) {
      if (how === 'reset') socket.resetAndDestroy()
      else socket.destroy()
    }
    return size
  }

  /** Forwards nothing more on the open connections, and does not close them; later connections work. */
  stall(): void {
    for (const socket of this.sockets) socket.unpipe().pause()
  }

  private async join(client: Socket): Promise<void> {
    const service = connect(Number(new URL(await this.target).port), '127.0.0.1')
    for (const [socket, other] of [
      [client, service],
      [service, client],
    ] as const) {
      this.sockets.add(socket)
      // Passes a connection error on to the other side.
      socket.on('error', () => other.resetAndDestroy())
      socket.on('close', () => {
        this.sockets.delete(socket)
        other.destroy()
      })
    }
    client.on('data', (bytes) => this.count(bytes.length))
    client.pipe(service).pipe(client)
  }

  private count(bytes: number): void {
    this.passedBytes += bytes
    while (this.passedBytes >= (this.options.points[this.next] ?? Number.POSITIVE_INFINITY)) {
      const what = this.options.onPoint(this.next++)
      if (what !== 'go on') this.cut(what)
    }
  }
}
