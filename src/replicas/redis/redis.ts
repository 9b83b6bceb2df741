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
  function run(
    script: string,
    keys: readonly string[],
    words: readonly (string | number)[],
  ): Promise<unknown> {
    return connection.ask((redis) => redis.eval(script, keys.length, ...keys, ...words))
  }

  return {
    name: 'redis',
    async hit(quotas) {
      const keys = quotas.map(({ key }) => `parley:window:${key}`)
      const numbers = (await run(HIT, keys, [WINDOW_MS, ...quotas.map(({ limit }) => limit)])) as number[]
      return quotas.map((_quota, at): WindowCount => {
        const [count = 0, leftMs = 0] = numbers.slice(2 * at)
        return { count, leftMs }
      })
    },
    async takeSlots(replica, owners) {
      const limits = owners.map(({ limit }) => limit)
      const keys = [REPLICAS, ...owners.map(({ key }) => slotsOf(key))]
      const full = (await run(TAKE_SLOTS, keys, [replica, LIVE_FOR_MS, slotsKeptMs, ...limits])) as number
      return owners[full - 1]
    },
    async addSlots(replica, key, by) {
      await run(ADD_SLOTS, [slotsOf(key)], [replica, slotsKeptMs, by])
    },
    async register({ replica, former, open }) {
      const keys = [REPLICAS, ...[...open.keys()].map(slotsOf)]
      const words = [replica, former, LIVE_FOR_MS, slotsKeptMs, ...open.values()]
      return (await run(REGISTER, keys, words)) as number
    },
    async beat(replica) {
      ear.check()
      const replicas = (await run(BEAT, [REPLICAS], [replica, LIVE_FOR_MS])) as number
      return replicas === 0 ? undefined : replicas
    },
    async leave(replica) {
      await connection.ask((redis) => redis.zrem(REPLICAS, replica))
    },
    async send(text) {
      await connection.ask((redis) => redis.publish(channel, text))
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
      await connection.ask(() => redis.subscribe(channel))
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
    if (this.isOpen) this.connection.ask((redis) => redis.ping()).catch(() => {})
  }

  close(): void {
    this.connection.close()
  }
}
