/** Defines the schemas for queries of agent lists and for the agent bin. */
import { z } from 'zod'
import type { Page } from '../lib/page.ts'
import { reference, searchText } from '../lib/schema-bounds.ts'
import { BIN_SECONDS, type BinnedRow } from './bin.ts'
import { agentId, createdAt } from './schema.ts'

export const AgentListQuery = z.object({
  limit: z.int().min(1).max(100).optional().meta({
    description:
      'Maximum number of agents to return, up to 100. Without it, a response contains at most 1000 agents. In both cases, it contains at most 2 MiB of definitions.',
  }),
  after: reference()
    .optional()
    .meta({ description: 'Id of an agent; returns only agents after it in the list.' }),
  before: reference()
    .optional()
    .meta({ description: 'Id of an agent; returns only agents before it in the list.' }),
  order: z
    .enum(['asc', 'desc'])
    .optional()
    .meta({ default: 'desc', description: 'Sort order; `desc` returns the newest agents first.' }),
  sort: z
    .enum(['created', 'name', 'updated'], { error: 'must be created, name or updated' })
    .optional()
    .meta({ default: 'created', description: 'Sort field.' }),
  q: searchText().optional().meta({
    description: 'Returns only agents whose name or id contains this text.',
  }),
  include: z.enum(['last_used_on'], { error: 'must be last_used_on' }).optional().meta({
    description: "Adds this field to each agent. `last_used_on` is the day of the agent's last call.",
  }),
})

export const AgentNamesQuery = z.object({ ids: z.array(agentId).max(100) })

export const AgentNames = z.array(z.strictObject({ id: agentId, name: z.string() }))

export const AgentBinQuery = z.object({
  limit: z.int().min(1).max(100).default(50).meta({ description: 'Maximum number of agents to return.' }),
  after: reference()
    .optional()
    .meta({ description: 'Id of an agent in the bin; returns only agents after it in the list.' }),
})

const purgeAt = z.int().meta({ description: 'Unix seconds after which the server deletes the agent.' })

export const AgentBinned = z
  .strictObject({ id: agentId, binned: z.literal(true), purge_at: purgeAt })
  .meta({ id: 'AgentBinned' })

export const AgentRestored = z
  .strictObject({ id: agentId, restored: z.literal(true) })
  .meta({ id: 'AgentRestored' })

const AgentBinItem = z
  .strictObject({
    id: agentId,
    name: z.string(),
    created_at: createdAt,
    binned_at: z.int().meta({ description: 'Unix seconds at which the agent was moved to the bin.' }),
    purge_at: purgeAt,
  })
  .meta({ id: 'AgentBinItem' })

export const AgentBinList = z
  .strictObject({ object: z.literal('list'), data: z.array(AgentBinItem), has_more: z.boolean() })
  .meta({ id: 'AgentBinList' })

export function renderBin({ rows, hasMore }: Page<BinnedRow>): z.output<typeof AgentBinList> {
  const data = rows.map(({ id, name, created_at, binned_at }) => ({
    ...{ id, name, created_at, binned_at },
    purge_at: binned_at + BIN_SECONDS,
  }))
  return { object: 'list', data, has_more: hasMore }
}
