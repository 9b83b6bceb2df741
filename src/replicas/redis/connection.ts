/** Connects to Redis, reconnects automatically, and drops the connection if a reply is late or invalid. */

import { createRequire } from 'node:module'
import { Redis } from 'ioredis'
import { TimeoutError, within } from '../../lib/timeout.ts'

const REPLY_TIMEOUT_MS = 100
/** Timeout for connecting, including the handshake. */
const CONNECT_TIMEOUT_MS = 1_000
const LONGEST_PAUSE_MS = 1_000

/** Clients whose connection is reset if ioredis cannot handle a reply. */
const guarded = new WeakSet<object>()

export class RedisConnection {
  /** Use it only for events; send commands with `ask`. */
  readonly redis: Redis
  /** The error of the last failed connection attempt. */
  private connectError: Error | undefined
  private isDropped = false

  constructor(url: string) {
    this.redis = new Redis(url, {
      lazyConnect: true,
      connectTimeout: CONNECT_TIMEOUT_MS,
      // Applies to commands that ioredis sends itself; `ask` limits all others.
      commandTimeout: CONNECT_TIMEOUT_MS,
      disconnectTimeout: 1,
      enableOfflineQueue: false,
      // Does not resend commands after a disconnect, because they may have taken effect.
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      retryStrategy: (tries) => Math.min(tries * 50, LONGEST_PAUSE_MS),
    })
    guarded.add(this.redis)
    this.redis.on('error', (error: Error) => {
      this.connectError = error
      // After an unexpected reply, later replies would be matched to the wrong commands.
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

  /**
   * Sends a command and parses its reply with `read`. @throws Error if Redis is unavailable, or if the reply
   * is late or invalid, which also drops the connection.
   */
  async ask<A, T>(command: (redis: Redis) => Promise<A>, read: (reply: A) => T): Promise<T> {
    let reply: A
    try {
      reply = await within(REPLY_TIMEOUT_MS, command(this.redis))
    } catch (error) {
      // Drops the connection, because the late reply would be matched to the next command.
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

/**
 * If a reply has an unexpected shape, ioredis throws where no caller can catch the error; this function
 * resets the connection instead. package.json pins ioredis.
 */
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
