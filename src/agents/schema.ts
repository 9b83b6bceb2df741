/** Defines the request and response schemas for agents, and renders agents into them. */
import { z } from 'zod'
import { longText, reference, singleLine } from '../lib/schema-bounds.ts'
import { findDefaultModel, idOf } from '../models/policy.ts'
import { openAgentKey } from './agents.ts'
import type { Agent } from './cache.ts'
import { AgentBehavior, AgentTool } from './definition.ts'
import { AgentConversations } from './definition-parts.ts'
import type { Dependencies } from './dependencies.ts'
import type { AgentPage, VersionPage } from './list.ts'

export const agentId = reference().meta({ description: 'Agent id: `agent-` followed by 20 characters.' })
const agentKey = z.string().meta({ description: 'Agent key; safe to publish on a web page.' })
const parentKey = z
  .string()
  .meta({ description: 'Public part of the parent key that owns the agent, never its secret.' })
export const createdAt = z.int().meta({ description: 'Unix seconds.' })
const tools = z.array(AgentTool)
/**
 * Higher than the HTTP server's limit for all headers together, so the server rejects longer headers first.
 */
const MAX_HEADER_LENGTH = 65_536

/** Ignores unknown fields, as agent definitions ignore unknown keys. */
export const DefinitionBody = z
  .object({
    yaml: longText().meta({ description: 'The agent definition, as YAML (or Markdown with front matter).' }),
    format: z.enum(['yaml', 'markdown']).default('yaml').meta({ description: 'Format of `yaml`.' }),
  })
  .meta({ id: 'AgentDefinitionBody' })

const MAX_NOTE = 200

/** A line in which the author describes a version. */
export const VersionNote = singleLine(
  z.string().min(1, 'must not be empty').max(MAX_NOTE, `must be at most ${MAX_NOTE} characters`),
)

export const VersionBody = DefinitionBody.extend({
  note: VersionNote.optional().meta({ description: 'What this version changes, for the list of versions.' }),
}).meta({ id: 'AgentVersionBody' })

export const DefinitionReplacement = VersionBody.extend({
  agent_id: agentId,
  if_match: z
    .string()
    .max(MAX_HEADER_LENGTH)
    .optional()
    .meta({ description: 'ETag of the version that this change is based on.' }),
})

export const AgentReference = z.object({ agent_id: agentId })

const wrongVersion = 'must be a whole number, 1 or more'

export const AgentVersionReference = z.strictObject({
  agent_id: agentId,
  version: z
    .union(
      [
        z.int().min(1, wrongVersion),
        z
          .string()
          .max(9, wrongVersion)
          .regex(/^[1-9]\d{0,8}$/)
          .transform(Number),
      ],
      wrongVersion,
    )
    .meta({ override: { type: 'integer', minimum: 1 }, description: 'Version number, starting at 1.' }),
})

export const AgentVersionsQuery = AgentReference.extend({
  before: z.int().min(1).optional().meta({ description: 'Version number; returns only earlier versions.' }),
})

export const AgentCreated = z
  .strictObject({ agent_id: agentId, agent_key: agentKey, parent_key: parentKey, created_at: createdAt })
  .meta({ id: 'AgentCreated' })

const AgentListItem = z
  .strictObject({
    id: agentId,
    agent_key: agentKey,
    name: z.string(),
    model: z.string(),
    tools,
    behavior: AgentBehavior.optional(),
    markdown: z.string(),
    created_at: createdAt,
    last_used_on: z.iso.date().nullable().optional().meta({
      description: 'Last day (UTC) with a call, or null; present only with `include=last_used_on`.',
    }),
  })
  .meta({ id: 'AgentListItem' })

/** The last three fields are present only in paged responses. */
export const AgentList = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(AgentListItem),
    first_id: z.string().nullable().optional(),
    last_id: z.string().nullable().optional(),
    has_more: z.boolean().optional(),
  })
  .meta({ id: 'AgentList' })

export const AgentDetail = z
  .strictObject({
    agent_id: agentId,
    parent_key: parentKey,
    created_at: createdAt,
    markdown: z.string(),
    definition: z.strictObject({
      name: z.string(),
      model: z.string(),
      temperature: z.number(),
      tools,
      behavior: AgentBehavior.optional(),
      conversations: AgentConversations.optional().meta({
        description:
          'Storage settings of the agent, including defaults; absent if the agent stores no conversations.',
      }),
    }),
    instructions: z.string(),
    yaml: z.string().meta({ description: 'The definition text, exactly as the client sent it.' }),
    format: z.enum(['yaml', 'markdown']).meta({ description: 'Format of the definition text.' }),
    version: z.int(),
    key_hint: z.string(),
  })
  .meta({ id: 'AgentDetail' })

export const AgentUpdated = z
  .strictObject({
    agent_id: agentId,
    agent_key: agentKey,
    parent_key: parentKey,
    name: z.string(),
    model: z.string(),
    tools,
    updated: z.literal(true),
    version: z.int(),
  })
  .meta({ id: 'AgentUpdated' })

export const AgentDeleted = z
  .strictObject({ id: agentId, deleted: z.literal(true) })
  .meta({ id: 'AgentDeleted' })

export const AgentVersionList = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(
      z
        .strictObject({
          version: z.int(),
          name: z.string(),
          yaml: z.string(),
          created_at: createdAt,
          note: z.string().nullable().meta({ description: 'What the author wrote about the version.' }),
          author: z.string().nullable().meta({
            description:
              "Author of the version: the public id of a parent key, a user's email address, or the operating-system user who ran a command. Null for versions before 0.3.0.",
          }),
          current: z.boolean().meta({ description: 'True for the current version.' }),
        })
        .meta({ id: 'AgentVersion' }),
    ),
    has_more: z
      .boolean()
      .optional()
      .meta({ description: 'Whether there are earlier versions; absent if the list contains all of them.' }),
  })
  .meta({ id: 'AgentVersionList' })

export function renderParentKey(tenantId: string): string {
  return `svc_${tenantId}`
}

export function renderAgentCreated(
  deps: Pick<Dependencies, 'sealer'>,
  agent: Agent,
): z.output<typeof AgentCreated> {
  const { id, parent_key_id, created_at } = agent.row
  return {
    agent_id: id,
    agent_key: openAgentKey(deps, agent),
    parent_key: renderParentKey(parent_key_id),
    created_at,
  }
}

export function renderAgentList(
  deps: Pick<Dependencies, 'sealer' | 'models'>,
  { agents, hasMore, lastDays }: AgentPage,
): z.output<typeof AgentList> {
  const data = agents.map((agent) => ({
    id: agent.row.id,
    agent_key: openAgentKey(deps, agent),
    ...renderSummary(deps, agent),
    markdown: agent.markdown,
    created_at: agent.row.created_at,
    ...(lastDays && { last_used_on: lastDays.get(agent.row.id) ?? null }),
  }))
  if (hasMore === undefined) return { object: 'list', data }
  return {
    object: 'list',
    data,
    first_id: data.at(0)?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: hasMore,
  }
}

export function renderAgentDetail(
  deps: Pick<Dependencies, 'models'>,
  agent: Agent,
): z.output<typeof AgentDetail> {
  const { row, definition, markdown } = agent
  return {
    agent_id: row.id,
    parent_key: renderParentKey(row.parent_key_id),
    created_at: row.created_at,
    markdown,
    definition: {
      ...renderSummary(deps, agent),
      temperature: definition.temperature,
      ...(definition.conversations && { conversations: definition.conversations }),
    },
    instructions: definition.instructions,
    yaml: row.source,
    format: row.format,
    version: row.version,
    key_hint: row.key_hint,
  }
}

export function renderAgentUpdated(
  deps: Pick<Dependencies, 'sealer' | 'models'>,
  agent: Agent,
): z.output<typeof AgentUpdated> {
  const { name, model, tools } = renderSummary(deps, agent)
  return {
    agent_id: agent.row.id,
    agent_key: openAgentKey(deps, agent),
    parent_key: renderParentKey(agent.row.parent_key_id),
    name,
    model,
    tools,
    updated: true,
    version: agent.row.version,
  }
}

export function renderVersionList({
  versions,
  current,
  hasMore,
}: VersionPage): z.output<typeof AgentVersionList> {
  return {
    object: 'list',
    data: versions.map(({ version, name, source, created_at, note, author }) => ({
      version,
      name,
      yaml: source,
      created_at,
      note,
      author,
      current: version === current,
    })),
    ...(hasMore === undefined ? {} : { has_more: hasMore }),
  }
}

function renderSummary(deps: Pick<Dependencies, 'models'>, agent: Agent) {
  const { name, tools, behavior } = agent.definition
  return { name, model: modelOf(deps, agent), tools, ...(behavior === undefined ? {} : { behavior }) }
}

/**
 * Returns the first of these that exists: the definition's model, the model that the agent would use now, the
 * server's default model. Returns an empty string if none exists.
 */
export function modelOf(
  { models }: Pick<Dependencies, 'models'>,
  { definition, policy }: Pick<Agent, 'definition' | 'policy'>,
): string {
  const { model } = definition
  if (model !== undefined) return model
  const current = findDefaultModel(models, { policy, ownModel: undefined })
  return current === undefined ? (models.defaultModel() ?? '') : idOf(models, current.route)
}
