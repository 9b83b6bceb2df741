/** Connects to Redis, reconnects automatically, and drops the connection when a reply is late or invalid. */

import { createRequire } from 'node:module'
import { Redis } from 'ioredis'
import { TimeoutError, within } from '../../lib/timeout.ts'

const REPLY_TIMEOUT_MS = 100
/** The timeout for connecting, including the handshake. */
const CONNECT_TIMEOUT_MS = 1_000
const LONGEST_PAUSE_MS = 1_000

/** Connections that are reset by a reply that ioredis cannot handle. */
const guarded = new WeakSet<object>()

export class RedisConnection {
  /** Use it for events only, and `ask` for commands. */
  readonly redis: Redis
  /** Why the last attempt to connect failed. */
  private connectError: Error | undefined
  private isDropped = false

  constructor(url: string) {
    this.redis = new Redis(url, {
      lazyConnect: true,
      connectTimeout: CONNECT_TIMEOUT_MS,
      // For commands that ioredis sends itself. `ask` bounds ours, and distinguishes a busy process from a server that does not reply.
      commandTimeout: CONNECT_TIMEOUT_MS,
      disconnectTimeout: 1,
      enableOfflineQueue: false,
      // A command that was sent when the connection broke may have taken effect, so it is not sent again.
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      retryStrategy: (tries) => Math.min(tries * 50, LONGEST_PAUSE_MS),
    })
    guarded.add(this.redis)
    this.redis.on('error', (error: Error) => {
      this.connectError = error
      // After a reply without a command, later replies would be matched to the wrong commands.
      if (this.redis.status === 'ready') this.drop()
    })
    this.redis.on('ready', () => {
      this.connectError = undefined
      this.isDropped = false
    })
  }

  /** Resolves when connected, or after the timeout. */
  async open(): Promise<void> {
    await within(CONNECT_TIMEOUT_MS, this.redis.connect()).catch(() => {})
  }

  /** Parses the reply with `read`. @throws Error when Redis is unavailable, or its reply is late or invalid; then drops the connection. */
  async ask<A, T>(command: (redis: Redis) => Promise<A>, read: (reply: A) => T): Promise<T> {
    let reply: A
    try {
      reply = await within(REPLY_TIMEOUT_MS, command(this.redis))
    } catch (error) {
      // A late reply must not be matched to the next command.
      if (error instanceof TimeoutError) this.drop()
      throw this.connectError ?? error
    }
    try {
      return read(reply)
    } catch (error) {
      this.drop()
      throw error
    }
  }

  /** Reconnects. */
  drop(): void {
    if (this.isDropped) return
    this.isDropped = true
    this.redis.disconnect(true)
  }

  close(): void {
    this.redis.disconnect()
  }
}

interface DataHandler {
  dispatch(this: { readonly redis: Redis }, handle: () => void): void
}

const handlers: { readonly default: { readonly prototype: DataHandler } } = createRequire(import.meta.url)(
  'ioredis/built/DataHandler.js',
)
const { prototype } = handlers.default
const { dispatch } = prototype

/** A reply of an unexpected shape makes ioredis throw where no caller can catch; resets the connection instead. package.json pins ioredis. */
prototype.dispatch = function dispatchGuarded(handle) {
  const { redis } = this
  if (!guarded.has(redis)) return dispatch.call(this, handle)
  try {
    handle()
  } catch (error) {
    redis.emit('error', error)
    redis.disconnect(true)
  }
}
