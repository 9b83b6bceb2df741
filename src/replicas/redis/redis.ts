/** Implements the coordination store on Redis. */
import { type CoordinationStore, LIVE_FOR_MS, type Subscriber } from '../coordination-store.ts'
import { WINDOW_MS, type WindowCount } from '../limits.ts'
import { RedisConnection } from './connection.ts'
import { ACQUIRE_STREAM, ADJUST_STREAMS, BEAT, HIT, REGISTER } from './scripts.ts'

/** Connects, and keeps trying in the background. `streamsKeptMs` must exceed the duration of every stream. */
export async function openRedisStore(url: string, streamsKeptMs: number): Promise<CoordinationStore> {
  const connection = new RedisConnection(url)
  // Includes the database number, because a server's databases share their channels.
  const channel = `parley:${connection.redis.options.db ?? 0}:bus`
  const subscription = new Subscription(url, channel)
  await connection.open()

  function run<T>(
    script: string,
    keys: readonly string[],
    parameters: readonly (string | number)[],
    read: (reply: unknown) => T,
  ): Promise<T> {
    return connection.ask((redis) => redis.eval(script, keys.length, ...keys, ...parameters), read)
  }

  return {
    name: 'redis',
    async hit(quotas, cost) {
      const keys = quotas.map(({ key }) => `parley:window:${key}`)
      const parameters = [WINDOW_MS, cost, ...quotas.map(({ limit }) => limit)]
      const numbers = await run(HIT, keys, parameters, (reply) => toNumbers(reply, 2 * quotas.length))
      return quotas.map((_quota, at): WindowCount => {
        const [count = 0, leftMs = 0] = numbers.slice(2 * at)
        return { count, leftMs }
      })
    },
    async acquireStream(replica, quotas) {
      const limits = quotas.map(({ limit }) => limit)
      const keys = [REPLICAS, ...quotas.map(({ key }) => streamsOf(key))]
      const parameters = [replica, LIVE_FOR_MS, streamsKeptMs, ...limits]
      const full = await run(ACQUIRE_STREAM, keys, parameters, toNumber)
      return quotas[full - 1]
    },
    async adjustStreams(replica, key, by) {
      await run(ADJUST_STREAMS, [streamsOf(key)], [replica, streamsKeptMs, by], ignore)
    },
    async register({ replica, former, open }) {
      const keys = [REPLICAS, ...[...open.keys()].map(streamsOf)]
      const parameters = [replica, former, LIVE_FOR_MS, streamsKeptMs, ...open.values()]
      return run(REGISTER, keys, parameters, toNumber)
    },
    async beat(replica) {
      subscription.check()
      const replicas = await run(BEAT, [REPLICAS], [replica, LIVE_FOR_MS], toNumber)
      return replicas === 0 ? undefined : replicas
    },
    async leave(replica) {
      await connection.ask((redis) => redis.zrem(REPLICAS, replica), ignore)
    },
    async send(text) {
      await connection.ask((redis) => redis.publish(channel, text), ignore)
    },
    subscribe: (subscriber) => subscription.open(subscriber),
    isSubscribed: () => subscription.isOpen,
    async close() {
      connection.close()
      subscription.close()
    },
  }
}

const REPLICAS = 'parley:replicas'

/** Replicas that run other versions use the same key, so its name must not change. */
function streamsOf(key: string): string {
  return `parley:slots:${key}`
}

/** @throws Error unless the reply is a non-negative integer. */
function toNumber(reply: unknown): number {
  if (!Number.isSafeInteger(reply) || (reply as number) < 0) throw new Error('Redis sent an invalid reply')
  return reply as number
}

function toNumbers(reply: unknown, count: number): number[] {
  if (!Array.isArray(reply) || reply.length !== count) throw new Error('Redis sent an invalid reply')
  return reply.map(toNumber)
}

function ignore(): void {}

class Subscription {
  isOpen = false
  private readonly connection: RedisConnection
  private readonly channel: string

  constructor(url: string, channel: string) {
    this.connection = new RedisConnection(url)
    this.channel = channel
  }

  async open({ onMessage, onGap }: Subscriber): Promise<void> {
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

  /** Drops the connection if the server hangs, because nothing else detects that. */
  check(): void {
    if (this.isOpen) this.connection.ask((redis) => redis.ping(), ignore).catch(() => {})
  }

  close(): void {
    this.connection.close()
  }
}
