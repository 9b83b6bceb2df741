/** A connection to PostgreSQL that only listens, and comes back by itself. */
import { setTimeout as wait } from 'node:timers/promises'
import type { PostgresAccess } from '../../db/postgres.ts'
import { within } from '../../lib/timeout.ts'
import type { Hearing } from '../coordination-store.ts'

type Client = ReturnType<PostgresAccess['createClient']>

const ANSWER_WITHIN_MS = 2_000
const PAUSE_MS = 500

export class Listener {
  private readonly postgres: PostgresAccess
  private readonly channel: string
  private readonly closing = new AbortController()
  private client: Client | undefined
  private running: Promise<void> = Promise.resolve()
  private isChecking = false

  constructor(postgres: PostgresAccess, channel: string) {
    this.postgres = postgres
    this.channel = channel
  }

  get isOpen(): boolean {
    return this.client !== undefined
  }

  /** Resolves when it listens, or the first attempt has failed. */
  open(hearing: Hearing): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.running = this.run(hearing, resolve)
    return promise
  }

  /** A server that hangs says nothing of it: the connection is dropped when it does not answer. */
  check(): void {
    const { client } = this
    if (client === undefined || this.isChecking) return
    this.isChecking = true
    within(ANSWER_WITHIN_MS, client.query('select'))
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

  private async run(hearing: Hearing, onFirstTry: () => void): Promise<void> {
    while (!this.closing.signal.aborted) {
      await this.listenOnce(hearing, onFirstTry).catch(() => {})
      this.client = undefined
      onFirstTry()
      await wait(PAUSE_MS, undefined, { signal: this.closing.signal, ref: false }).catch(() => {})
    }
  }

  /** Resolves when the connection is lost. */
  private async listenOnce({ onMessage, onGap }: Hearing, onOpen: () => void): Promise<void> {
    const client = this.postgres.createClient()
    const lost = Promise.withResolvers<void>()
    client.on('error', () => lost.resolve())
    client.on('end', () => lost.resolve())
    client.on('notification', ({ payload }) => onMessage(payload ?? ''))
    try {
      await client.connect()
      await within(ANSWER_WITHIN_MS, client.query(`listen ${this.channel}`))
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

/** Whoever is at the other end need not agree. */
function end(client: Client): void {
  client.end().catch(() => {})
}
