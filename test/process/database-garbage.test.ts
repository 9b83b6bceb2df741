/** Tests that malformed PostgreSQL messages make a statement fail but do not crash the process. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createPool } from '../../src/db/postgres.ts'

/** Builds a protocol message from its type and body. */
function toMessage(type: string, body: readonly number[] = []): Buffer {
  const head = Buffer.alloc(5)
  head.write(type, 'latin1')
  head.writeInt32BE(4 + body.length, 1)
  return Buffer.concat([head, Buffer.from(body)])
}

const ready = toMessage('Z', [0x49])
const welcome = Buffer.concat([toMessage('R', [0, 0, 0, 0]), ready])

/** Starts a fake PostgreSQL server that responds to each statement with `bytes`; returns its URL. */
async function startGarbage(bytes: Buffer): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write(welcome)
      socket.on('data', () => socket.write(bytes))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `postgresql://user:password@127.0.0.1:${(server.address() as AddressInfo).port}/rows`
}

test.each<[what: string, bytes: Buffer]>([
  ['a notification that is too short', toMessage('A', [0, 0])],
  ['a notification without a body', toMessage('A')],
  ['a row with a negative number of columns', toMessage('D', [255, 255, 0])],
  ['a row description that is too short', toMessage('T', [0, 9, 65])],
])('a statement fails when the PostgreSQL server sends %s', async (_what, bytes) => {
  const pool = createPool(await startGarbage(bytes), pino({ level: 'silent' }))
  onTestFinished(() => pool.end())
  await expect(pool.query('select 1')).rejects.toThrow()
})
