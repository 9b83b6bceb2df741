/** Pools keep-alive connections and reuses the one that has been idle longest. */
import { Connection, type Sink } from '../bench/connection.ts'

export class Connections {
  private readonly port: number
  private readonly waiting: Connection[] = []

  constructor(port: number) {
    this.port = port
  }

  /** Sends a request; resolves when the sink has received the complete response. @throws BenchFailure */
  async exchange<S extends Sink>(request: Buffer, sink: S): Promise<S> {
    const connection = this.waiting.shift() ?? (await Connection.open(this.port))
    await connection.exchange(request, sink)
    this.waiting.push(connection)
    return sink
  }

  /** Sends a request and disconnects when the first bytes of the response arrive. */
  async breakOff(request: Buffer): Promise<void> {
    const connection = await Connection.open(this.port)
    await new Promise<void>((resolve, reject) => {
      const onPayload = () => {
        connection.close()
        resolve()
      }
      connection.exchange(request, { onPayload, onEnd: () => resolve() }).catch(reject)
    })
  }

  close(): void {
    for (const connection of this.waiting.splice(0)) connection.close()
  }
}
