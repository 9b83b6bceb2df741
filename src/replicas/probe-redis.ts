/** Tries a Redis out for `parley doctor`: nothing is written there. */
import { RedisConnection } from './redis/connection.ts'

/** What a Redis says of itself. */
export interface ExaminedRedis {
  readonly version: string
  /** Milliseconds since the epoch, by its clock. */
  readonly now: number
}

/** @throws Error when it is away, or refuses these credentials. */
export async function examineRedis(url: string): Promise<ExaminedRedis> {
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
