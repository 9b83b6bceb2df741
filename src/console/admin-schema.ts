/** The JSON shapes of the administrators' operations. */
import { z } from 'zod'
import { renderParentKey } from '../agents/schema.ts'
import { type AuditRow, auditActions } from '../identity/audit.ts'
import type { ParentKeyRow } from '../identity/keys.ts'
import type { UserRow } from '../identity/users.ts'
import { label, reference } from '../lib/schema-bounds.ts'
import type { BudgetState } from '../usage/budgets.ts'
import { Moment, UsageEntry, UsageList, UsageQuery } from '../usage/schema.ts'

const seconds = z.int().meta({ description: 'Unix seconds.' })
const count = z.int().nonnegative()
const keyId = reference().meta({ description: "A parent key's 12 public characters." })
const limit = z.int().min(1).max(100).default(50).meta({ description: 'At most so many.' })
const hasMore = z.boolean().meta({ description: 'Older ones follow.' })
const list = <T extends z.ZodType>(item: T) =>
  z.strictObject({ object: z.literal('list'), data: z.array(item), has_more: hasMore })

export const AdminListQuery = z.strictObject({
  limit,
  after: reference().optional().meta({ description: 'The `id` of an entry: only older ones.' }),
})
export type AdminListQuery = z.output<typeof AdminListQuery>

export const KeyReference = z.strictObject({ key_id: keyId })

const bound = z
  .strictObject({ limit: count, used: count })
  .nullable()
  .meta({ id: 'BudgetBound', description: 'Tokens in the running period (UTC); null without a bound.' })

const Budget = z.strictObject({ day: bound, month: bound }).meta({ id: 'BudgetState' })

const AdminUser = z
  .strictObject({
    id: z.string(),
    email: z.string(),
    name: z.string(),
    is_administrator: z.boolean(),
    keys: z
      .array(
        z.strictObject({ id: keyId, name: z.string(), is_automatic: z.boolean(), is_active: z.boolean() }),
      )
      .meta({ description: 'Those that were not revoked, newest first.' }),
    created_at: seconds,
    last_seen_at: seconds.meta({ description: 'Unix seconds; at most a minute old.' }),
  })
  .meta({ id: 'AdminUser' })

export const AdminUserList = list(AdminUser).meta({ id: 'AdminUserList' })
export type AdminUserList = z.output<typeof AdminUserList>

const AdminKey = z
  .strictObject({
    id: keyId,
    parent_key: z.string().meta({ description: "The key's public part, never its secret." }),
    key_hint: z.string().meta({ description: "The newest secret's prefix and last four characters." }),
    name: z.string(),
    owner: z.string().nullable().meta({ description: "Its user's e-mail address; null for nobody's." }),
    is_automatic: z.boolean().meta({ description: 'It was made for its user on a visit.' }),
    agents: count,
    budget: Budget,
    created_at: seconds,
    rotated_at: seconds.nullable(),
    revoked_at: seconds.nullable(),
    last_used_at: seconds.nullable().meta({ description: 'Unix seconds; at most a minute old.' }),
  })
  .meta({ id: 'AdminKey' })

export const AdminKeyList = list(AdminKey).meta({ id: 'AdminKeyList' })
export type AdminKeyList = z.output<typeof AdminKeyList>

export const KeyRevoked = z.strictObject({ id: keyId, revoked: z.literal(true) }).meta({ id: 'KeyRevoked' })

const tokens = count
  .nullish()
  .meta({ description: 'Tokens, 0 for none at all; unbounded when null or absent.' })

export const BudgetBody = z.strictObject({ day: tokens, month: tokens }).meta({ id: 'Budget' })
export type BudgetBody = z.output<typeof BudgetBody>
export const BudgetReplacement = BudgetBody.extend(KeyReference.shape)

export const KeyBudget = z.strictObject({ id: keyId, budget: Budget }).meta({ id: 'KeyBudget' })

export const AdminUsageQuery = UsageQuery.extend({
  group_by: z
    .enum(['day', 'agent', 'model', 'key'], { error: 'must be day, agent, model or key' })
    .default('day')
    .meta({ description: 'What each entry of the list sums up.' }),
  key: keyId
    .regex(/^[0-9A-Za-z]{12}$/, "must be a parent key's 12 public characters")
    .optional()
    .meta({ description: 'Only this parent key; all of them without it.' }),
})

const AdminUsageEntry = UsageEntry.extend({
  key: keyId.optional().meta({ description: "With `group_by=key`: the parent key's 12 public characters." }),
}).meta({ id: 'AdminUsageEntry' })

export const AdminUsageList = UsageList.extend({ data: z.array(AdminUsageEntry) }).meta({
  id: 'AdminUsageList',
})

export const AuditListQuery = AdminListQuery.extend({
  action: z.enum(auditActions).optional().meta({ description: 'Only this action.' }),
  actor: label()
    .optional()
    .meta({ description: "Only this actor: a key's 12 public characters, an e-mail address, a user name." }),
  target: label()
    .optional()
    .meta({ description: 'Only what was done to the key, agent, file or artifact of this id.' }),
  from: Moment.optional().meta({ description: 'Nothing before: a day (UTC) or a second.' }),
  to: Moment.optional().meta({ description: 'Nothing after: a day (UTC) or a second, included.' }),
})
export type AuditListQuery = z.output<typeof AuditListQuery>

const AuditEvent = z
  .strictObject({
    id: z.string(),
    created_at: seconds,
    actor_kind: z.enum(['parent_key', 'user', 'token', 'command', 'service']),
    actor: z.string().meta({
      description:
        "The key's 12 public characters, the user's e-mail address, the artifact a token is for, or who ran the command.",
    }),
    action: z.string().meta({ examples: ['key.revoke'] }),
    target_kind: z.enum(['key', 'agent', 'file', 'artifact', 'user']),
    target_id: z.string(),
    tenant: keyId.nullable().meta({ description: 'The parent key the target is, or belongs to.' }),
    request_id: z.string().nullable(),
    client_address: z.string().nullable(),
    details: z.record(z.string(), z.unknown()).meta({ description: 'What changed; never a secret.' }),
  })
  .meta({ id: 'AuditEvent' })

export const AuditList = list(AuditEvent).meta({ id: 'AuditList' })
export type AuditList = z.output<typeof AuditList>

export function renderBudget({ day, month }: BudgetState): z.output<typeof Budget> {
  return { day: day ?? null, month: month ?? null }
}

export function renderUser(
  user: UserRow,
  keys: readonly ParentKeyRow[],
  isAdministrator: boolean,
): z.output<typeof AdminUser> {
  const { id, email, name, active_key_id, created_at, last_seen_at } = user
  return {
    id,
    email,
    name,
    is_administrator: isAdministrator,
    keys: keys.map((key) => ({
      id: key.id,
      name: key.name,
      is_automatic: key.is_automatic === 1,
      is_active: key.id === active_key_id,
    })),
    created_at,
    last_seen_at,
  }
}

export function renderKey(
  key: ParentKeyRow,
  { owner, agents, budget }: Pick<z.output<typeof AdminKey>, 'owner' | 'agents' | 'budget'>,
): z.output<typeof AdminKey> {
  const { id, hint, name, is_automatic, created_at, rotated_at, revoked_at, last_used_at } = key
  return {
    id,
    parent_key: renderParentKey(id),
    key_hint: hint,
    name,
    owner,
    is_automatic: is_automatic === 1,
    agents,
    budget,
    created_at,
    rotated_at,
    revoked_at,
    last_used_at,
  }
}

export function renderEvent({ details, ...row }: AuditRow): z.output<typeof AuditEvent> {
  const { id, created_at, actor_kind, actor, action, target_kind, target_id } = row
  const { tenant, request_id, client_address } = row
  const done = { id, created_at, actor_kind, actor, action, target_kind, target_id }
  return { ...done, tenant, request_id, client_address, details: JSON.parse(details) }
}
