/** Redis as what all replicas count in and talk through. */
import { type CommonStore, type Hearing, LIVE_FOR_MS } from '../coordination-store.ts'
import { WINDOW_MS, type WindowCount } from '../rate-limiter.ts'
import { RedisConnection } from './connection.ts'
import { ADD_SLOTS, BEAT, HIT, REGISTER, TAKE_SLOTS } from './scripts.ts'

/** Connects, or goes on trying to; `slotsKeptMs` is longer than any stream lasts. */
export async function openRedisStore(url: string, slotsKeptMs: number): Promise<CommonStore> {
  const connection = new RedisConnection(url)
  // The names of messages are the same in all databases of a server.
  const channel = `parley:${connection.redis.options.db ?? 0}:bus`
  const ear = new Ear(url, channel)
  await connection.open()

  /** Runs a script over these keys. */
  function run<T>(
    script: string,
    keys: readonly string[],
    words: readonly (string | number)[],
    read: (answer: unknown) => T,
  ): Promise<T> {
    return connection.ask((redis) => redis.eval(script, keys.length, ...keys, ...words), read)
  }

  return {
    name: 'redis',
    async hit(quotas) {
      const keys = quotas.map(({ key }) => `parley:window:${key}`)
      const words = [WINDOW_MS, ...quotas.map(({ limit }) => limit)]
      const numbers = await run(HIT, keys, words, (answer) => toNumbers(answer, 2 * quotas.length))
      return quotas.map((_quota, at): WindowCount => {
        const [count = 0, leftMs = 0] = numbers.slice(2 * at)
        return { count, leftMs }
      })
    },
    async takeSlots(replica, owners) {
      const limits = owners.map(({ limit }) => limit)
      const keys = [REPLICAS, ...owners.map(({ key }) => slotsOf(key))]
      const full = await run(TAKE_SLOTS, keys, [replica, LIVE_FOR_MS, slotsKeptMs, ...limits], toNumber)
      return owners[full - 1]
    },
    async addSlots(replica, key, by) {
      await run(ADD_SLOTS, [slotsOf(key)], [replica, slotsKeptMs, by], ignore)
    },
    async register({ replica, former, open }) {
      const keys = [REPLICAS, ...[...open.keys()].map(slotsOf)]
      const words = [replica, former, LIVE_FOR_MS, slotsKeptMs, ...open.values()]
      return run(REGISTER, keys, words, toNumber)
    },
    async beat(replica) {
      ear.check()
      const replicas = await run(BEAT, [REPLICAS], [replica, LIVE_FOR_MS], toNumber)
      return replicas === 0 ? undefined : replicas
    },
    async leave(replica) {
      await connection.ask((redis) => redis.zrem(REPLICAS, replica), ignore)
    },
    async send(text) {
      await connection.ask((redis) => redis.publish(channel, text), ignore)
    },
    listen: (hearing) => ear.open(hearing),
    isListening: () => ear.isOpen,
    async close() {
      connection.close()
      ear.close()
    },
  }
}

const REPLICAS = 'parley:replicas'

function slotsOf(key: string): string {
  return `parley:slots:${key}`
}

/** @throws Error unless it is a whole number from 0 on, as every script of ours answers. */
function toNumber(answer: unknown): number {
  if (!Number.isSafeInteger(answer) || (answer as number) < 0) throw new Error('Redis sent an invalid answer')
  return answer as number
}

/** @throws Error unless it is a list of so many numbers. */
function toNumbers(answer: unknown, count: number): number[] {
  if (!Array.isArray(answer) || answer.length !== count) throw new Error('Redis sent an invalid answer')
  return answer.map(toNumber)
}

function ignore(): void {}

/** A connection that only listens. */
class Ear {
  isOpen = false
  private readonly connection: RedisConnection
  private readonly channel: string

  constructor(url: string, channel: string) {
    this.connection = new RedisConnection(url)
    this.channel = channel
  }

  async open({ onMessage, onGap }: Hearing): Promise<void> {
    const { connection, channel } = this
    const { redis } = connection
    const subscribe = async () => {
      await connection.ask(() => redis.subscribe(channel), toNumber)
      this.isOpen = true
      onGap()
    }
    redis.on('message', (_channel: string, text: string) => onMessage(text))
    redis.on('ready', () => void subscribe().catch(() => connection.drop()))
    redis.on('close', () => {
      this.isOpen = false
    })
    await connection.open()
  }

  /** A server that hangs says nothing of it: the connection is dropped when it does not answer. */
  check(): void {
    if (this.isOpen) this.connection.ask((redis) => redis.ping(), ignore).catch(() => {})
  }

  close(): void {
    this.connection.close()
  }
}
