/** Creates, rotates and encrypts the secrets with which owners sign the identity of visitors. */
import type { Selectable } from 'kysely'
import type { Logger } from 'pino'
import { agentNotFound } from '../../agents/cache.ts'
import type { Database } from '../../db/database.ts'
import type { VisitorSecretTable } from '../../db/tables.ts'
import { type Actor, recordAudit } from '../../identity/audit.ts'
import { unixSeconds } from '../../lib/clock.ts'
import type { Random } from '../../lib/ids.ts'
import { type Sealer, sealedPrefix } from '../../lib/sealer.ts'
import type { Dependencies } from '../dependencies.ts'

type SecretRow = Selectable<VisitorSecretTable>

const SECRET_BYTES = 32

export interface SecretState {
  /** Unix seconds; null if the agent has no secret. */
  readonly createdAt: number | null
  /** Unix seconds; null if no earlier secret is valid. */
  readonly previousValidUntil: number | null
}

/** @throws ServiceError `not_found` if the tenant has no such agent */
export async function getSecretState(
  { db, agents, clock }: Pick<Dependencies, 'db' | 'agents' | 'clock'>,
  tenantId: string,
  agentId: string,
): Promise<SecretState> {
  if ((await agents.find(tenantId, agentId)) === undefined) throw agentNotFound()
  const row = await findSecretRow(db, agentId)
  return toState(row, unixSeconds(clock))
}

/**
 * Creates the agent's secret, or replaces it. The previous secret remains valid for `overlapSeconds`.
 * @throws ServiceError `not_found` if the tenant has no such agent
 */
export async function rotateVisitorSecret(
  deps: Pick<Dependencies, 'db' | 'agents' | 'clock' | 'random' | 'nextPosition' | 'sealer'>,
  actor: Actor,
  { tenantId, agentId }: { readonly tenantId: string; readonly agentId: string },
  overlapSeconds: number,
): Promise<SecretState & { readonly secret: string }> {
  if ((await deps.agents.find(tenantId, agentId)) === undefined) throw agentNotFound()
  const secret = newSecret(deps.random)
  const nowSeconds = unixSeconds(deps.clock)
  const row = await deps.db.transaction().execute(async (trx) => {
    const sealed = deps.sealer.seal(secret, contextOf(agentId))
    const changed = await trx
      .insertInto('visitor_secrets')
      .values({
        ...{ agent_id: agentId, secret_sealed: sealed, created_at: nowSeconds },
        ...{ previous_sealed: null, previous_until: null },
      })
      .onConflict((conflict) =>
        conflict.column('agent_id').doUpdateSet((eb) => ({
          secret_sealed: sealed,
          previous_sealed: overlapSeconds === 0 ? null : eb.ref('visitor_secrets.secret_sealed'),
          previous_until: overlapSeconds === 0 ? null : nowSeconds + overlapSeconds,
          created_at: nowSeconds,
        })),
      )
      .returningAll()
      .executeTakeFirstOrThrow()
    await recordAudit({ ...deps, db: trx }, actor, {
      action: 'visitor_secret.rotate',
      target: { kind: 'agent', id: agentId },
      tenantId,
      details: { overlap_seconds: overlapSeconds },
    })
    return changed
  })
  return { secret, ...toState(row, nowSeconds) }
}

/**
 * Returns the agent's secrets that are valid at `nowSeconds`, newest first. @throws Error if one cannot be
 * decrypted
 */
export async function openVisitorSecrets(
  { db, sealer }: { readonly db: Database; readonly sealer: Pick<Sealer, 'open'> },
  agentId: string,
  nowSeconds: number,
): Promise<string[]> {
  const row = await findSecretRow(db, agentId)
  if (row === undefined) return []
  const { secret_sealed: newest, previous_sealed: previous, previous_until: until } = row
  const isValid = previous !== null && until !== null && until > nowSeconds
  return [newest, ...(isValid ? [previous] : [])].map((sealed) => sealer.open(sealed, contextOf(agentId)))
}

/** Re-encrypts the secrets with the current master key. Skips secrets that cannot be decrypted. */
export async function resealVisitorSecrets({
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
  const rows = await db.selectFrom('visitor_secrets').selectAll().orderBy('agent_id').execute()
  for (const { agent_id: agentId, secret_sealed: secret, previous_sealed: previous } of rows) {
    const context = contextOf(agentId)
    const reseal = (sealed: string) =>
      sealed.startsWith(present) ? sealed : sealer.seal(sealer.open(sealed, context), context)
    try {
      await db
        .updateTable('visitor_secrets')
        .set({ secret_sealed: reseal(secret), previous_sealed: previous === null ? null : reseal(previous) })
        .where('agent_id', '=', agentId)
        // Skips a secret that was rotated after it was read.
        .where('secret_sealed', '=', secret)
        .execute()
    } catch (error) {
      log.warn({ err: error, agentId }, 'failed to decrypt the visitor secret of an agent')
    }
  }
}

/** Owners use the UTF-8 bytes of the whole text as the key of HS256. */
function newSecret(random: Random): string {
  return `vsk_${Buffer.from(random(SECRET_BYTES)).toString('base64url')}`
}

function findSecretRow(db: Database, agentId: string): Promise<SecretRow | undefined> {
  return db.selectFrom('visitor_secrets').selectAll().where('agent_id', '=', agentId).executeTakeFirst()
}

function toState(row: SecretRow | undefined, nowSeconds: number): SecretState {
  const until = row?.previous_until ?? null
  return {
    createdAt: row?.created_at ?? null,
    previousValidUntil: until !== null && until > nowSeconds ? until : null,
  }
}

function contextOf(agentId: string): string {
  return `visitors of ${agentId}`
}
