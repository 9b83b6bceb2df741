/** Signs a delivery as defined by Standard Webhooks, and sends it once. */
import { Webhook } from 'standardwebhooks'
import { EgressClient, type EgressOptions } from '../http/egress.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { ADDRESS_NOT_PUBLIC } from '../lib/net.ts'
import type { Sealer } from '../lib/sealer.ts'
import type { DeliveryRow } from './deliveries.ts'
import { messageIdOf } from './events.ts'
import type { OperatorWebhook } from './operator-webhooks.ts'
import { parseRetryAfter } from './schedule.ts'
import { openSecrets } from './sealed-secrets.ts'
import type { WebhookRow } from './store.ts'

type Receiver = WebhookRow | OperatorWebhook

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
  /** Also connects to private addresses. */
  private readonly operatorClient: EgressClient
  private readonly timeoutMs: number

  constructor({
    clock,
    sealer,
    timeoutMs = TIMEOUT_MS,
    operatorHosts = [],
    ...egress
  }: EgressOptions & {
    readonly clock: Clock
    readonly sealer: Pick<Sealer, 'open'>
    /** 15 seconds by default. */
    readonly timeoutMs?: number
    /** The hosts of the operator's webhooks. */
    readonly operatorHosts?: readonly string[]
  }) {
    this.clock = clock
    this.sealer = sealer
    this.client = new EgressClient(egress)
    this.operatorClient = new EgressClient({ ...egress, allow: operatorHosts })
    this.timeoutMs = timeoutMs
  }

  /** Sends a delivery; a failure is a result, not an error. */
  async send(webhook: Receiver, delivery: Pick<DeliveryRow, 'id' | 'body'>): Promise<Sent> {
    const client = isOperators(webhook) ? this.operatorClient : this.client
    try {
      const { status, headers } = await client.send(webhook.url, {
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

  async close(): Promise<void> {
    await Promise.all([this.client.close(), this.operatorClient.close()])
  }

  private sign(webhook: Receiver, { id, body }: Pick<DeliveryRow, 'id' | 'body'>): Record<string, string> {
    const nowSeconds = unixSeconds(this.clock)
    const sentAt = new Date(nowSeconds * 1000)
    const messageId = messageIdOf(id)
    const secrets = isOperators(webhook) ? [webhook.secret] : openSecrets(this.sealer, webhook, nowSeconds)
    const signatures = secrets.map((secret) => new Webhook(secret).sign(messageId, sentAt, body))
    return {
      'content-type': 'application/json',
      'user-agent': 'Parley-Webhooks',
      'webhook-id': messageId,
      'webhook-timestamp': String(nowSeconds),
      'webhook-signature': signatures.join(' '),
    }
  }
}

function isOperators(webhook: Receiver): webhook is OperatorWebhook {
  return 'secret' in webhook
}

function describeStatus(status: number): string {
  const isRedirect = status >= 300 && status < 400
  return isRedirect
    ? `The receiver responded with a redirect (${status}).`
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
