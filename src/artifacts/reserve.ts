/** Reserves an id for somebody who has no key, and makes the tokens to upload and open it with. */

import { assertTenantLives } from '../keys/keys.ts'
import { unixSeconds } from '../lib/clock.ts'
import type { Dependencies } from './dependencies.ts'
import { newUuid } from './kinds.ts'
import type { ArtifactReservation } from './schema.ts'
import { insertArtifact } from './store.ts'
import type { ArtifactTokens } from './tokens.ts'

/** What whoever asked gets; `expiresAt` is in Unix seconds. */
export interface Reservation {
  readonly id: string
  readonly uploadToken: string
  readonly viewToken: string
  readonly expiresAt: number
  readonly uploadUrl: string
}

/** Decision: 9 (`POST /v1/artifacts`). @throws ServiceError `invalid_api_key` when the key was revoked meanwhile. */
export async function reserveArtifact(
  deps: Pick<Dependencies, 'config' | 'db' | 'clock' | 'random'> & { readonly tokens: ArtifactTokens },
  tenantId: string,
  { kind, related_to, expires_in }: ArtifactReservation,
): Promise<Reservation> {
  const { config, db, clock, random, tokens } = deps
  const now = unixSeconds(clock)
  const [artifactId, expiresAt] = [newUuid(random), now + expires_in]
  await db.transaction().execute(async (trx) => {
    await assertTenantLives({ db: trx }, tenantId)
    const row = { id: artifactId, parent_key_id: tenantId, state: 'unknown' } as const
    const times = { created_at: now, expires_at: expiresAt }
    await insertArtifact(trx, { ...row, ...times, kind: kind ?? null, related_to: related_to ?? null })
  })
  return {
    id: artifactId,
    uploadToken: tokens.mint({ artifactId, use: 'upload', tenantId, expiresAt }),
    viewToken: tokens.mint({ artifactId, use: 'view', tenantId, expiresAt }),
    expiresAt,
    uploadUrl: `${config.server.publicUrl ?? ''}/upload`,
  }
}
