/** Defines the schemas of visitors and erasures for the owner of an agent, and renders them. */
import { z } from 'zod'
import type { ErasureRow, OwnedVisitor } from '../conversations/operator.ts'
import { KeyRotation } from '../identity/key-schema.ts'
import { jsonObject, label, reference, searchText } from '../lib/schema-bounds.ts'

const seconds = z.int().meta({ description: 'Unix seconds.' })
const visitorId = reference().meta({ description: 'Visitor id: `vis_` and 24 characters.' })

export const VisitorReference = z.strictObject({ visitor_id: visitorId })

export const ErasureReference = z.strictObject({
  erasure_id: reference().meta({ description: 'Erasure id: `erase_` and 24 characters.' }),
})

export const VisitorsQuery = z.strictObject({
  limit: z.int().min(1).max(100).default(20).meta({ description: 'Maximum number of visitors.' }),
  after: reference().optional().meta({ description: 'Id of the last visitor of the previous page.' }),
  agent: reference().optional().meta({ description: 'Only visitors who have used the agent with this id.' }),
  subject: label().optional().meta({ description: 'Only visitors with this subject.' }),
  email: label().optional().meta({ description: 'Only visitors with this email address.' }),
  q: searchText()
    .optional()
    .meta({ description: 'Text in the id, the subject, the email address or the name.' }),
})

export const Visitor = z
  .strictObject({
    id: z.string(),
    object: z.literal('visitor'),
    kind: z.enum(['anonymous', 'verified', 'named']),
    issuer: z.string().meta({ description: 'Authority that issued the subject; the agent if anonymous.' }),
    subject: z.string().meta({ description: 'The id at the issuer; the visitor id for anonymous visitors.' }),
    email: z.string().nullable(),
    name: z.string().nullable(),
    claims: jsonObject(),
    conversations: z.int().meta({ description: 'Number of stored conversations.' }),
    created_at: seconds,
    seen_at: seconds.meta({ description: 'Unix seconds of the last activity.' }),
  })
  .meta({ id: 'Visitor' })
export type Visitor = z.output<typeof Visitor>

export const VisitorList = z
  .strictObject({ object: z.literal('list'), data: z.array(Visitor), has_more: z.boolean() })
  .meta({ id: 'VisitorList' })

const MAX_TOKEN_SECONDS = 3600

const identityText = (most: number) =>
  z
    .string()
    .min(1, 'must not be empty')
    .max(most, `must be at most ${most} characters`)
    .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), 'must not contain control characters')

/** The id by which a client with a parent key names a visitor. */
export const VisitorSubject = identityText(255)

export const VisitorTokenInput = z
  .strictObject({
    subject: VisitorSubject.meta({ description: 'Your id for the visitor.' }),
    name: identityText(200).optional(),
    email: identityText(320).optional(),
    expires_in: z
      .int()
      .min(1, `must be 1 to ${MAX_TOKEN_SECONDS}`)
      .max(MAX_TOKEN_SECONDS, `must be 1 to ${MAX_TOKEN_SECONDS}`)
      .default(MAX_TOKEN_SECONDS)
      .meta({ description: 'Seconds until the token expires.' }),
  })
  .meta({ id: 'VisitorTokenInput' })

export const VisitorToken = z
  .strictObject({
    object: z.literal('visitor.token'),
    token: z.string().meta({ description: 'Send it in the `X-Parley-Visitor` header.' }),
    expires_at: seconds,
    visitor: z.strictObject({ id: z.string(), kind: z.literal('named'), subject: z.string() }),
  })
  .meta({ id: 'VisitorToken' })

const agentReference = { agent_id: reference().meta({ description: 'Agent id.' }) }

export const VisitorSecretReference = z.strictObject(agentReference)
export const VisitorSecretRotation = KeyRotation.extend(agentReference)

const secretState = {
  agent_id: z.string(),
  created_at: seconds.nullable().meta({ description: 'Unix seconds; null if the agent has no secret.' }),
  previous_valid_until: seconds.nullable().meta({
    description: 'Unix seconds until which the previous secret is valid; null if it is not valid.',
  }),
}

export const VisitorSecret = z.strictObject(secretState).meta({ id: 'VisitorSecret' })

export const VisitorSecretRotated = z
  .strictObject({
    ...secretState,
    secret: z.string().meta({
      description: 'Key for HS256: the UTF-8 bytes of this text (`vsk_…`). It is shown only once.',
    }),
  })
  .meta({ id: 'VisitorSecretRotated' })

const count = z.int()

export const Erasure = z
  .strictObject({
    id: z.string(),
    object: z.literal('erasure'),
    status: z.enum(['running', 'done']),
    visitor_id: z.string(),
    counts: z
      .strictObject({
        ...{ conversations: count, turns: count, items: count, events: count, search: count },
        ...{ blobs: count, ratings: count, notes: count, deliveries: count },
      })
      .meta({ description: 'Number of deleted rows and blobs.' }),
    started_at: seconds,
    finished_at: seconds.nullable(),
    remains: z.array(z.string()).meta({ description: 'What the erasure does not delete.' }),
    digest: z.string().nullable().meta({
      description:
        'SHA-256 of the sorted ids of the deleted conversations, separated by newlines; null while the erasure runs.',
    }),
  })
  .meta({ id: 'Erasure' })
export type Erasure = z.output<typeof Erasure>

export function renderVisitor(row: OwnedVisitor, conversations: number): Visitor {
  const { id, kind, issuer, subject, email, name, claims, created_at, seen_at } = row
  return {
    ...{ id, object: 'visitor', kind, issuer, subject, email, name, claims: JSON.parse(claims) },
    ...{ conversations, created_at, seen_at },
  }
}

export function renderErasure(row: ErasureRow, database: 'sqlite' | 'postgres'): Erasure {
  const { id, status, visitor_id, counts, started_at, finished_at, digest } = row
  const startedAt = new Date(started_at * 1000).toISOString().replace('.000Z', 'Z')
  const remains = ['audit and usage rows without text', `backups made before ${startedAt}`]
  if (database === 'postgres')
    remains.push('deleted rows in PostgreSQL until it reuses their space, and archived WAL files')
  return {
    ...{ id, object: 'erasure', status, visitor_id, counts: JSON.parse(counts) },
    ...{ started_at, finished_at, remains, digest },
  }
}
