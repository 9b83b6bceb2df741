/** Defines the request and response schemas of the administrator operations. */
import { z } from 'zod'
import { renderParentKey } from '../agents/schema.ts'
import type { BudgetState } from '../budgets/token-budgets.ts'
import { type AuditRow, auditActions } from '../identity/audit.ts'
import type { ParentKeyRow } from '../identity/keys.ts'
import type { UserRow } from '../identity/users.ts'
import { label, reference, searchText } from '../lib/schema-bounds.ts'
import { Moment, UsageEntry, UsageList, UsageQuery } from '../usage/schema.ts'

const seconds = z.int().meta({ description: 'Unix seconds.' })
const count = z.int().nonnegative()
const keyId = reference().meta({ description: 'Id of a parent key: its 12 public characters.' })
const limit = z
  .int()
  .min(1)
  .max(100)
  .default(50)
  .meta({ description: 'Maximum number of entries to return.' })
const hasMore = z.boolean().meta({ description: 'True if the list continues after this page.' })
const list = <T extends z.ZodType>(item: T) =>
  z.strictObject({ object: z.literal('list'), data: z.array(item), has_more: hasMore })

const order = z
  .enum(['asc', 'desc'])
  .default('desc')
  .meta({ description: 'Sort order; `desc` returns the newest entries first.' })
const pageQuery = z.strictObject({
  limit,
  after: reference().optional().meta({ description: 'Id of an entry; returns only entries after it.' }),
  order,
})
const sortBy = { description: 'Sort field.' }

export const AdminUserQuery = pageQuery.extend({
  sort: z
    .enum(['created', 'email', 'last_seen'], { error: 'must be created, email or last_seen' })
    .default('created')
    .meta(sortBy),
  q: searchText()
    .optional()
    .meta({ description: 'Returns only users whose email address, name or id contains this text.' }),
})
export type AdminUserQuery = z.output<typeof AdminUserQuery>

const keyStates = ['active', 'disabled', 'expired', 'revoked'] as const

export const AdminKeyQuery = pageQuery.extend({
  sort: z
    .enum(['created', 'name', 'last_used'], { error: 'must be created, name or last_used' })
    .default('created')
    .meta(sortBy),
  q: searchText().optional().meta({ description: 'Returns only keys whose name or id contains this text.' }),
  user: reference().optional().meta({ description: 'Id of a user; returns only keys of this user.' }),
  state: z
    .enum(keyStates, { error: 'must be active, disabled, expired or revoked' })
    .optional()
    .meta({ description: 'Returns only keys in this state.' }),
})
export type AdminKeyQuery = z.output<typeof AdminKeyQuery>

export const KeyReference = z.strictObject({ key_id: keyId })

export const KeyRevocation = z
  .strictObject({
    with_created_keys: z.boolean().default(false).meta({
      description: 'Whether to also revoke the keys that this key created, directly or through other keys.',
    }),
  })
  .meta({ id: 'KeyRevocation' })

export const KeyRevocationInput = KeyRevocation.extend(KeyReference.shape)

const bound = z.strictObject({ limit: count, used: count }).nullable().meta({
  id: 'BudgetBound',
  description:
    'Token limit and number of tokens used in the current UTC day or month; null if there is no limit.',
})

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
      .meta({ description: 'Keys that were not revoked, newest first.' }),
    created_at: seconds,
    last_seen_at: seconds.meta({ description: 'Unix seconds; up to a minute out of date.' }),
  })
  .meta({ id: 'AdminUser' })

export const AdminUserList = list(AdminUser).meta({ id: 'AdminUserList' })
export type AdminUserList = z.output<typeof AdminUserList>

const AdminKey = z
  .strictObject({
    id: keyId,
    parent_key: z.string().meta({ description: 'Public part of the key, never its secret.' }),
    key_hint: z.string().meta({ description: 'Prefix and last four characters of the newest secret.' }),
    name: z.string(),
    owner: z
      .string()
      .nullable()
      .meta({ description: 'Email address of the user who owns the key; null if no user owns it.' }),
    is_automatic: z.boolean().meta({
      description: "True if the server created the key automatically on its user's first visit.",
    }),
    agents: count,
    budget: Budget,
    created_at: seconds,
    rotated_at: seconds.nullable(),
    disabled_at: seconds.nullable(),
    expires_at: seconds.nullable(),
    revoked_at: seconds.nullable(),
    last_used_at: seconds.nullable().meta({ description: 'Unix seconds; up to a minute out of date.' }),
  })
  .meta({ id: 'AdminKey' })

export const AdminKeyList = list(AdminKey).meta({ id: 'AdminKeyList' })
export type AdminKeyList = z.output<typeof AdminKeyList>

const tokens = count
  .nullish()
  .meta({ description: 'Maximum number of tokens; 0 allows no calls. Null or absent means unlimited.' })

export const BudgetBody = z.strictObject({ day: tokens, month: tokens }).meta({ id: 'Budget' })
export type BudgetBody = z.output<typeof BudgetBody>
export const BudgetReplacement = BudgetBody.extend(KeyReference.shape)

export const KeyBudget = z.strictObject({ id: keyId, budget: Budget }).meta({ id: 'KeyBudget' })

export const AdminUsageQuery = UsageQuery.extend({
  group_by: z
    .enum(['day', 'agent', 'model', 'key'], { error: 'must be day, agent, model or key' })
    .default('day')
    .meta({ description: 'Grouping of the totals.' }),
  key: keyId
    .regex(/^[0-9A-Za-z]{12}$/, 'must be the 12 public characters of a parent key')
    .optional()
    .meta({
      description: 'Returns only the usage of this parent key. If omitted, returns the usage of all keys.',
    }),
})

const AdminUsageEntry = UsageEntry.extend({
  key: keyId
    .optional()
    .meta({ description: 'With `group_by=key`: the 12 public characters of the parent key.' }),
}).meta({ id: 'AdminUsageEntry' })

export const AdminUsageList = UsageList.extend({ data: z.array(AdminUsageEntry) }).meta({
  id: 'AdminUsageList',
})

export const AuditListQuery = pageQuery.extend({
  action: z.enum(auditActions).optional().meta({ description: 'Returns only entries with this action.' }),
  actor: label().optional().meta({
    description:
      'Returns only entries with this actor: a public key id, an email address, an artifact id, or an operating-system user name.',
  }),
  target: label()
    .optional()
    .meta({ description: 'Returns only entries about the object with this id, such as a key or an agent.' }),
  from: Moment.optional().meta({
    description: 'Start of the period: a day (UTC) or Unix seconds, inclusive.',
  }),
  to: Moment.optional().meta({ description: 'End of the period: a day (UTC) or Unix seconds, inclusive.' }),
})
export type AuditListQuery = z.output<typeof AuditListQuery>

const AuditEvent = z
  .strictObject({
    id: z.string(),
    created_at: seconds,
    actor_kind: z.enum(['parent_key', 'user', 'token', 'command', 'service']),
    actor: z.string().meta({
      description:
        "The key's public id, the user's email address, the id of the token's artifact, or the operating-system user who ran the command.",
    }),
    action: z.string().meta({ examples: ['key.revoke'] }),
    target_kind: z.enum([
      'key',
      'agent',
      'file',
      'artifact',
      'conversation',
      'user',
      'provider',
      'price',
      'model',
      'webhook',
      'budget',
      'visitor',
    ]),
    target_id: z.string(),
    tenant: keyId.nullable().meta({
      description:
        'The target if it is a parent key, otherwise the parent key that owns the target; null for other targets.',
    }),
    request_id: z.string().nullable(),
    client_address: z.string().nullable(),
    details: z
      .record(z.string(), z.unknown())
      .meta({ description: 'Details of the change, without secrets.' }),
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
  const { id, hint, name, is_automatic, created_at, rotated_at, last_used_at } = key
  const { disabled_at, expires_at, revoked_at } = key
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
    disabled_at,
    expires_at,
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
