/** Runs a TCP proxy that cuts each connection after a chosen number of response bytes. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

export interface AnswerCutter {
  readonly url: string
  readonly cuts: number
}

/** `nextLength` returns the number of bytes after which the next connection is cut. */
export async function startAnswerCutter(target: string, nextLength: () => number): Promise<AnswerCutter> {
  const open = new Set<Socket>()
  let cuts = 0
  const server = createServer((client) => {
    const service = connect(Number(new URL(target).port), '127.0.0.1')
    let left = nextLength()
    for (const [socket, other] of [
      [client, service],
      [service, client],
    ] as const) {
      open.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        open.delete(socket)
        other.destroy()
      })
    }
    client.on('data', (bytes) => service.write(bytes))
    service.on('data', (bytes: Buffer) => {
      if (left <= 0) return
      client.write(bytes.subarray(0, left))
      left -= bytes.length
      if (left > 0) return
      cuts += 1
      client.end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get cuts() {
      return cuts
    },
  }
}
