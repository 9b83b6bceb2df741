/**
 * Encrypts the API keys of stored providers, and re-encrypts them after the installation's secret changes.
 */
import type { Logger } from 'pino'
import type { Database } from '../db/database.ts'
import { type Sealer, sealedPrefix } from '../lib/sealer.ts'

/** The encryption context includes the origin, so that a key is never sent to a different server. */
function contextOf(name: string, baseUrl: string): string {
  return `provider ${name} ${new URL(baseUrl).origin}`
}

export function sealProviderKey(
  sealer: Sealer,
  { name, baseUrl, apiKey }: { readonly name: string; readonly baseUrl: string; readonly apiKey: string },
): string {
  return sealer.seal(apiKey, contextOf(name, baseUrl))
}

/** @throws Error if the key was encrypted with a different secret, or for a different provider or server. */
export function openProviderKey(
  sealer: Pick<Sealer, 'open'>,
  { name, base_url: baseUrl, key_sealed: sealed }: SealedProvider,
): string | undefined {
  return sealed === null ? undefined : sealer.open(sealed, contextOf(name, baseUrl))
}

interface SealedProvider {
  readonly name: string
  readonly base_url: string
  readonly key_sealed: string | null
}

/** Returns whether a stored provider's key is encrypted with a secret other than those with these ids. */
export async function hasProviderKeyOfOtherSecret(db: Database, keyIds: readonly string[]): Promise<boolean> {
  const known = keyIds.map(sealedPrefix)
  const rows = await db
    .selectFrom('providers')
    .select('key_sealed')
    .where('key_sealed', 'is not', null)
    .execute()
  return rows.some(({ key_sealed: sealed }) => !known.some((prefix) => sealed?.startsWith(prefix)))
}

/** Re-encrypts the providers' keys with the current secret. Skips keys that cannot be decrypted. */
export async function resealProviderKeys({
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
  const rows = await db.selectFrom('providers').select(['name', 'base_url', 'key_sealed']).execute()
  for (const row of rows) {
    if (row.key_sealed === null || row.key_sealed.startsWith(present)) continue
    const sealed = reseal(sealer, row)
    if (sealed === undefined) {
      log.warn({ provider: row.name }, "failed to decrypt a provider's key")
      continue
    }
    // Skips a key that was replaced after it was read.
    await db
      .updateTable('providers')
      .set({ key_sealed: sealed })
      .where('name', '=', row.name)
      .where('key_sealed', '=', row.key_sealed)
      .execute()
  }
}

function reseal(sealer: Sealer, row: SealedProvider): string | undefined {
  try {
    const apiKey = openProviderKey(sealer, row)
    if (apiKey === undefined) return undefined
    return sealProviderKey(sealer, { name: row.name, baseUrl: row.base_url, apiKey })
  } catch {
    return undefined
  }
}
