/** Receives PostgreSQL notifications on a separate connection, and reconnects automatically. */
import { setTimeout as wait } from 'node:timers/promises'
import type { NotificationClient, PostgresAccess } from '../../db/database.ts'
import { within } from '../../lib/timeout.ts'
import type { Subscriber } from '../coordination-store.ts'

const QUERY_TIMEOUT_MS = 2_000
const RECONNECT_AFTER_MS = 500

export class Listener {
  private readonly postgres: PostgresAccess
  private readonly channel: string
  private readonly closing = new AbortController()
  private client: NotificationClient | undefined
  private running: Promise<void> = Promise.resolve()
  private isChecking = false

  constructor(postgres: PostgresAccess, channel: string) {
    this.postgres = postgres
    this.channel = channel
  }

  get isOpen(): boolean {
    return this.client !== undefined
  }

  open(subscriber: Subscriber): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.running = this.run(subscriber, resolve)
    return promise
  }

  /** Drops the connection if the server hangs, because nothing else detects that. */
  check(): void {
    const { client } = this
    if (client === undefined || this.isChecking) return
    this.isChecking = true
    within(QUERY_TIMEOUT_MS, client.query('select'))
      .catch(() => end(client))
      .finally(() => {
        this.isChecking = false
      })
  }

  async close(): Promise<void> {
    this.closing.abort()
    if (this.client !== undefined) end(this.client)
    await this.running
  }

  private async run(subscriber: Subscriber, onFirstTry: () => void): Promise<void> {
    while (!this.closing.signal.aborted) {
      await this.listenOnce(subscriber, onFirstTry).catch(() => {})
      this.client = undefined
      onFirstTry()
      await wait(RECONNECT_AFTER_MS, undefined, { signal: this.closing.signal, ref: false }).catch(() => {})
    }
  }

  private async listenOnce({ onMessage, onGap }: Subscriber, onOpen: () => void): Promise<void> {
    const client = this.postgres.createClient()
    const lost = Promise.withResolvers<void>()
    client.on('error', () => lost.resolve())
    client.on('end', () => lost.resolve())
    client.on('notification', ({ payload }) => onMessage(payload ?? ''))
    try {
      await client.connect()
      await within(QUERY_TIMEOUT_MS, client.query(`listen ${this.channel}`))
      if (this.closing.signal.aborted) return
      this.client = client
      onGap()
      onOpen()
      await lost.promise
    } finally {
      end(client)
    }
  }
}

/** Closes the connection without waiting for the server, and ignores failures. */
function end(client: NotificationClient): void {
  client.end().catch(() => {})
}
