/** Runs a fake Redis server that can send invalid replies. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { HIT } from '../../src/replicas/redis/scripts.ts'

/** When to send invalid bytes: in reply to this command, or `unasked`. */
export type Moment = 'hello' | 'info' | 'eval' | 'subscribe' | 'ping' | 'unasked'

export interface FakeRedis {
  readonly url: string
  /** Sends `bytes` instead of the correct reply until `restore` is called. */
  breakAt(moment: Moment, bytes: string): void
  /** Sends only correct replies from now on. */
  restore(): void
}

export async function startFakeRedis(): Promise<FakeRedis> {
  const sockets = new Set<Socket>()
  let broken: { readonly moment: Moment; readonly bytes: string } | undefined

  function answer(words: readonly string[]): string {
    const name = words[0]?.toLowerCase()
    return broken !== undefined && broken.moment === name ? broken.bytes : answerAsRedis(words)
  }

  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    socket.setEncoding('latin1').on('data', (text: string) => {
      for (const words of readCommands(text)) socket.write(answer(words), 'latin1')
      if (broken?.moment === 'unasked') socket.write(broken.bytes, 'latin1')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  function cut(): void {
    for (const socket of sockets) socket.destroy()
  }

  onTestFinished(() => {
    cut()
    server.close()
  })
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}/0`,
    breakAt(moment, bytes) {
      broken = { moment, bytes }
      if (moment === 'hello' || moment === 'info' || moment === 'subscribe') cut()
    },
    restore() {
      broken = undefined
      cut()
    },
  }
}

/** Parses the commands in a chunk, which never contains partial commands. */
function* readCommands(text: string): Generator<string[]> {
  let at = 0
  const readLength = () => {
    const end = text.indexOf('\r\n', at)
    const length = Number(text.slice(at + 1, end))
    at = end + 2
    return length
  }
  while (text[at] === '*') {
    const words: string[] = []
    for (let left = readLength(); left > 0; left--) {
      const length = readLength()
      words.push(text.slice(at, at + length))
      at += length + 2
    }
    yield words
  }
}

function answerAsRedis([name = '', ...words]: readonly string[]): string {
  switch (name.toLowerCase()) {
    case 'hello':
      return '%1\r\n+proto\r\n:3\r\n'
    case 'info':
      return '$19\r\nredis_version:7.0.0\r\n'
    case 'eval':
      // Replies with one hit per key, one replica, or a free slot for each owner, depending on the script.
      if (words[0] === HIT)
        return `*${2 * Number(words[1])}\r\n${':1\r\n:60000\r\n'.repeat(Number(words[1]))}`
      return words[0]?.includes('HGETALL') ? ':0\r\n' : ':1\r\n'
    case 'subscribe':
      return `>3\r\n$9\r\nsubscribe\r\n$${words[0]?.length}\r\n${words[0]}\r\n:1\r\n`
    case 'ping':
      return '+PONG\r\n'
    case 'publish':
    case 'zrem':
      return ':1\r\n'
    default:
      return '+OK\r\n'
  }
}
