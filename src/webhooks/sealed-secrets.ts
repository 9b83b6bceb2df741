/**
 * Creates and encrypts the secrets that sign webhooks, and re-encrypts them after the installation's secret
 * changes.
 */
import type { Logger } from 'pino'
import type { Database } from '../db/database.ts'
import type { Random } from '../lib/ids.ts'
import { type Sealer, sealedPrefix } from '../lib/sealer.ts'
import { listAllWebhookRows, updateWebhookRow, type WebhookRow } from './store.ts'

const SECRET_BYTES = 32

/** Returns a secret in the format of Standard Webhooks. */
export function newSecret(random: Random): string {
  return `whsec_${Buffer.from(random(SECRET_BYTES)).toString('base64')}`
}

export function sealSecret(sealer: Pick<Sealer, 'seal'>, webhookId: string, secret: string): string {
  return sealer.seal(secret, contextOf(webhookId))
}

/**
 * Returns the secrets that are valid at `nowSeconds`, newest first.
 * @throws Error if a secret was encrypted with a different master key
 */
export function openSecrets(sealer: Pick<Sealer, 'open'>, row: WebhookRow, nowSeconds: number): string[] {
  const { id, secret_sealed: newest, previous_sealed: previous, previous_until: until } = row
  const isValid = previous !== null && until !== null && until > nowSeconds
  return [newest, ...(isValid ? [previous] : [])].map((sealed) => sealer.open(sealed, contextOf(id)))
}

/** Re-encrypts the secrets with the current master key. Skips secrets that cannot be decrypted. */
export async function resealWebhookSecrets({
  db,
  sealer,
  log,
}: {
  readonly db: Database
  readonly sealer: Sealer
  readonly log: Pick<Logger, 'warn'>
}): Promise<void> {
  if (sealer.formerKeyIds.length === 0) return
  const present = sealedPrefix(sealer.keyId)
  for (const { id, secret_sealed: secret, previous_sealed: previous } of await listAllWebhookRows(db)) {
    const reseal = (sealed: string) =>
      sealed.startsWith(present) ? sealed : sealSecret(sealer, id, sealer.open(sealed, contextOf(id)))
    try {
      await updateWebhookRow(db, id, {
        secret_sealed: reseal(secret),
        previous_sealed: previous === null ? null : reseal(previous),
      })
    } catch (error) {
      log.warn({ err: error, webhookId: id }, 'failed to decrypt the secret of a webhook')
    }
  }
}

function contextOf(webhookId: string): string {
  return `webhook ${webhookId}`
}
