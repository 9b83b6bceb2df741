/** Finds the operator's webhooks, which are in the configuration file. */
import { createHash } from 'node:crypto'
import type { OperatorWebhookConfig } from '../config/config.ts'

export interface OperatorWebhook {
  readonly id: string
  readonly url: string
  /** Not encrypted, because it is in the configuration. */
  readonly secret: string
  /** Event types; a trailing `*` matches any text. */
  readonly events: readonly string[]
}

const ID_LENGTH = 24

export class OperatorWebhooks {
  private readonly webhooks: readonly OperatorWebhook[]

  constructor(configured: readonly OperatorWebhookConfig[]) {
    this.webhooks = configured.map((webhook) => ({ ...webhook, id: toId(webhook.url) }))
  }

  get isEmpty(): boolean {
    return this.webhooks.length === 0
  }

  /** The hosts that the operator trusts, which may be private. */
  get hosts(): string[] {
    return this.webhooks.map(({ url }) => new URL(url).hostname.replace(/^\[(.*)\]$/, '$1'))
  }

  find(id: string): OperatorWebhook | undefined {
    return this.webhooks.find((webhook) => webhook.id === id)
  }

  listFor(type: string): OperatorWebhook[] {
    return this.webhooks.filter(({ events }) => events.some((pattern) => matches(pattern, type)))
  }
}

/**
 * Depends only on the URL, so that waiting deliveries survive a restart and a change of order in the file.
 */
function toId(url: string): string {
  return `whop_${createHash('sha256').update(url).digest('hex').slice(0, ID_LENGTH)}`
}

function matches(pattern: string, type: string): boolean {
  return pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : pattern === type
}
