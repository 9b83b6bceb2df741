/** Checks a Redis server for `parley doctor`, without writing to it. */
import { RedisConnection } from './redis/connection.ts'

export interface RedisProbe {
  readonly version: string
  /** Milliseconds since the epoch, according to the server's clock. */
  readonly now: number
}

/** @throws Error if the server is unavailable or rejects the credentials. */
export async function probeRedis(url: string): Promise<RedisProbe> {
  const connection = new RedisConnection(url)
  try {
    await connection.open()
    return await connection.ask(
      (redis) => Promise.all([redis.info('server'), redis.time() as Promise<(number | string)[]>]),
      ([info, [seconds, micros]]) => {
        const version = /^redis_version:(\S+)/m.exec(info)?.[1] ?? 'of an unknown version'
        return { version, now: Number(seconds) * 1_000 + Number(micros) / 1_000 }
      },
    )
  } finally {
    connection.close()
  }
}
