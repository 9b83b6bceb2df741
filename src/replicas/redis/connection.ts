/** A connection to Redis that comes back by itself, and is dropped when an answer does not come. Security: 2.12. */

import { Redis } from 'ioredis'
import { TimeoutError, within } from '../../lib/timeout.ts'
import { treatAsLost } from './protocol-errors.ts'

/** The longest that anybody waits for an answer. */
const ANSWER_WITHIN_MS = 100
/** Also for the first words on a new connection. */
const CONNECT_WITHIN_MS = 1_000
const LONGEST_PAUSE_MS = 1_000

export class RedisConnection {
  /** For events; commands go through `ask`. */
  readonly redis: Redis
  /** Why the last attempt to connect failed. */
  private trouble: Error | undefined
  private isDropped = false

  constructor(url: string) {
    this.redis = new Redis(url, {
      lazyConnect: true,
      connectTimeout: CONNECT_WITHIN_MS,
      // A backstop for the library's own commands: those of ours have `ask`, which knows a busy process from a silent server.
      commandTimeout: CONNECT_WITHIN_MS,
      disconnectTimeout: 1,
      enableOfflineQueue: false,
      // What was on its way when the connection broke is not sent again: it may have counted.
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      retryStrategy: (tries) => Math.min(tries * 50, LONGEST_PAUSE_MS),
    })
    treatAsLost(this.redis)
    this.redis.on('error', (error: Error) => {
      this.trouble = error
      // After a reply that belongs to no command, the next ones would be taken for answers to the wrong commands.
      if (this.redis.status === 'ready') this.drop()
    })
    this.redis.on('ready', () => {
      this.trouble = undefined
      this.isDropped = false
    })
  }

  /** Resolves when there is a connection, or after a while. */
  async open(): Promise<void> {
    await within(CONNECT_WITHIN_MS, this.redis.connect()).catch(() => {})
  }

  /**
   * What Redis answers, as `read` understands it.
   * @throws Error when it is away, does not answer in time or answers something else; the connection is dropped then.
   */
  async ask<A, T>(question: (redis: Redis) => Promise<A>, read: (answer: A) => T): Promise<T> {
    let answer: A
    try {
      answer = await within(ANSWER_WITHIN_MS, question(this.redis))
    } catch (error) {
      // An answer that comes late must not be taken for the next one's.
      if (error instanceof TimeoutError) this.drop()
      throw this.trouble ?? error
    }
    try {
      return read(answer)
    } catch (error) {
      this.drop()
      throw error
    }
  }

  /** Makes the connection anew. */
  drop(): void {
    if (this.isDropped) return
    this.isDropped = true
    this.redis.disconnect(true)
  }

  close(): void {
    this.redis.disconnect()
  }
}
