/** Signs a delivery as defined by Standard Webhooks, and sends it once. */
import { Webhook } from 'standardwebhooks'
import { EgressClient, type EgressOptions } from '../http/egress.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { ADDRESS_NOT_PUBLIC } from '../lib/net.ts'
import type { Sealer } from '../lib/sealer.ts'
import type { DeliveryRow } from './deliveries.ts'
import { parseRetryAfter } from './schedule.ts'
import { openSecrets } from './sealed-secrets.ts'
import type { WebhookRow } from './store.ts'

const TIMEOUT_MS = 15_000
const MAX_RESPONSE_BYTES = 64 * 1024

export interface Sent {
  readonly succeeded: boolean
  /** Null if there was no response. */
  readonly status: number | null
  /** Why the attempt failed; null after a success. */
  readonly error: string | null
  /** The receiver's `Retry-After`, in seconds. */
  readonly retryAfter: number | undefined
}

export class Sender {
  private readonly clock: Clock
  private readonly sealer: Pick<Sealer, 'open'>
  private readonly client: EgressClient
  private readonly timeoutMs: number

  constructor({
    clock,
    sealer,
    timeoutMs = TIMEOUT_MS,
    ...egress
  }: EgressOptions & {
    readonly clock: Clock
    readonly sealer: Pick<Sealer, 'open'>
    /** 15 seconds by default. */
    readonly timeoutMs?: number
  }) {
    this.clock = clock
    this.sealer = sealer
    this.client = new EgressClient(egress)
    this.timeoutMs = timeoutMs
  }

  /** Sends a delivery; a failure is a result, not an error. */
  async send(webhook: WebhookRow, delivery: Pick<DeliveryRow, 'id' | 'body'>): Promise<Sent> {
    try {
      const { status, headers } = await this.client.send(webhook.url, {
        method: 'POST',
        headers: this.sign(webhook, delivery),
        body: delivery.body,
        timeoutMs: this.timeoutMs,
        maxBytes: MAX_RESPONSE_BYTES,
      })
      const succeeded = status >= 200 && status < 300
      const error = succeeded ? null : describeStatus(status)
      return {
        succeeded,
        status,
        error,
        retryAfter: parseRetryAfter(headers['retry-after'], this.clock.now()),
      }
    } catch (thrown) {
      return { succeeded: false, status: null, error: describe(thrown), retryAfter: undefined }
    }
  }

  close(): Promise<void> {
    return this.client.close()
  }

  private sign(webhook: WebhookRow, { id, body }: Pick<DeliveryRow, 'id' | 'body'>): Record<string, string> {
    const nowSeconds = unixSeconds(this.clock)
    const sentAt = new Date(nowSeconds * 1000)
    const signatures = openSecrets(this.sealer, webhook, nowSeconds).map((secret) =>
      new Webhook(secret).sign(id, sentAt, body),
    )
    return {
      'content-type': 'application/json',
      'user-agent': 'Parley-Webhooks',
      'webhook-id': id,
      'webhook-timestamp': String(nowSeconds),
      'webhook-signature': signatures.join(' '),
    }
  }
}

function describeStatus(status: number): string {
  const isRedirect = status >= 300 && status < 400
  return isRedirect
    ? `The receiver responded with the redirect ${status}.`
    : `The receiver responded with ${status}.`
}

/** Describes a failure without addresses from the server's network. */
function describe(thrown: unknown): string {
  const { name, code, message } = thrown as { name?: string; code?: string; message?: string }
  if (code === ADDRESS_NOT_PUBLIC) return 'The host does not have a public address.'
  if (name === 'TimeoutError') return 'The receiver did not respond in time.'
  if (message?.startsWith('The URL ')) return message
  if (message?.startsWith('The stored secret')) return 'The secret cannot be decrypted; rotate it.'
  return `The connection failed${code === undefined ? '' : ` (${code})`}.`
}
