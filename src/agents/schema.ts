/** Defines the request and response schemas for agents, and renders agents into them. */
import { z } from 'zod'
import { longText, reference, searchText } from '../lib/schema-bounds.ts'
import { findDefaultModel, idOf } from '../models/policy.ts'
import { openAgentKey } from './agents.ts'
import type { Agent } from './cache.ts'
import { AgentBehavior, AgentTool, describeTool, PageTools, toolName } from './definition.ts'
import {
  AgentConversations,
  AttachmentsView,
  type AttachmentType,
  DisclaimerView,
  renderAttachments,
  renderDisclaimer,
  renderStorage,
} from './definition-parts.ts'
import type { Dependencies } from './dependencies.ts'
import type { AgentPage, VersionPage } from './list.ts'
import { ThemeView } from './theme.ts'

export const agentId = reference().meta({ description: 'Agent id: `agent-` followed by 20 characters.' })
const agentKey = z.string().meta({ description: 'Agent key; safe to publish on a web page.' })
const parentKey = z
  .string()
  .meta({ description: 'Public part of the parent key that owns the agent, never its secret.' })
export const createdAt = z.int().meta({ description: 'Unix seconds.' })
const tools = z.array(AgentTool)
/** Higher than the HTTP server's limit for all headers together, so that this limit never applies. */
const MAX_HEADER_LENGTH = 65_536

/** Ignores unknown fields, as agent definitions ignore unknown keys. */
export const DefinitionBody = z
  .object({
    yaml: longText().meta({ description: 'The agent definition, as YAML (or Markdown with front matter).' }),
    format: z.enum(['yaml', 'markdown']).default('yaml').meta({ description: 'Format of `yaml`.' }),
  })
  .meta({ id: 'AgentDefinitionBody' })

export const DefinitionReplacement = DefinitionBody.extend({
  agent_id: agentId,
  if_match: z
    .string()
    .max(MAX_HEADER_LENGTH)
    .optional()
    .meta({ description: 'ETag of the version that this change is based on.' }),
})

export const AgentReference = z.object({ agent_id: agentId })

export const AgentListQuery = z.object({
  limit: z.int().min(1).max(100).optional().meta({
    description:
      'Maximum number of agents to return. Defaults to 1000. A response contains at most 2 MiB of definitions.',
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
    .meta({ default: 'created', description: 'What the list is sorted by.' }),
  q: searchText().optional().meta({
    description: 'Returns only agents whose name or id contains this text.',
  }),
})

export const AgentNamesQuery = z.object({ ids: z.array(agentId).max(100) })

export const AgentNames = z.array(z.strictObject({ id: agentId, name: z.string() }))

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
  before: z
    .int()
    .min(1, wrongVersion)
    .optional()
    .meta({ description: 'Version number; returns only earlier versions.' }),
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
        description: 'What the agent stores, with default values; absent if it stores nothing.',
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

/** The agent fields that its public key may read. Never includes the instructions. */
export const AgentSelf = z
  .strictObject({
    id: agentId,
    name: z.string(),
    model: z.string(),
    tools: z.array(
      z.strictObject({
        name: z.string(),
        description: z.string(),
        inputSchema: z.record(z.string(), z.unknown()),
      }),
    ),
    pageTools: PageTools,
    greeting: z.string().nullable(),
    title: z.string().nullable(),
    starters: z.array(z.string()),
    theme: ThemeView,
    disclaimer: DisclaimerView,
    dictation: z.boolean().meta({ description: 'Whether visitors may dictate messages.' }),
    readAloud: z.boolean().meta({ description: 'Whether visitors may listen to answers.' }),
    attachments: AttachmentsView,
    followUps: z.boolean().meta({ description: 'Whether the widget suggests questions after an answer.' }),
    conversations: z.strictObject({
      stored: z.boolean().meta({ description: 'Whether the server stores conversations of this agent.' }),
      keep_days: z
        .int()
        .nullable()
        .meta({ description: 'Days after the last activity for which a conversation is stored.' }),
      notice: z
        .strictObject({ text: z.string(), url: z.string().nullable() })
        .nullable()
        .meta({ description: 'Text about storage for visitors; null for the default text.' }),
      list: z.boolean().meta({ description: 'Whether visitors may list their conversations.' }),
      delete: z.boolean().meta({ description: 'Whether visitors may delete their conversations.' }),
      rate: z.boolean().meta({ description: 'Whether visitors may rate answers.' }),
      resume_seconds: z.int().meta({ description: 'The widget continues conversations up to this age.' }),
    }),
  })
  .meta({ id: 'AgentSelf' })

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
  { agents, hasMore }: AgentPage,
): z.output<typeof AgentList> {
  const data = agents.map((agent) => ({
    id: agent.row.id,
    agent_key: openAgentKey(deps, agent),
    ...renderSummary(deps, agent),
    markdown: agent.markdown,
    created_at: agent.row.created_at,
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

/** A saved agent, or an unsaved definition. */
type DescribedAgent = Pick<Agent, 'definition' | 'policy'> & { readonly row: Pick<Agent['row'], 'id'> }

export function renderAgentSelf(
  deps: Pick<Dependencies, 'models' | 'tools' | 'config'>,
  agent: DescribedAgent,
): z.output<typeof AgentSelf> {
  const { definition, row } = agent
  return {
    id: row.id,
    name: definition.name,
    model: modelOf(deps, agent),
    tools: definition.tools.map((tool) => renderTool(deps, tool)),
    pageTools: definition.pageTools,
    greeting: definition.embed?.greeting ?? null,
    title: definition.embed?.title ?? null,
    starters: definition.embed?.starters ?? [],
    theme: definition.embed?.theme ?? {},
    disclaimer: renderDisclaimer(definition.embed?.disclaimer, definition.conversations?.notice?.url),
    dictation: definition.embed?.dictation ?? false,
    readAloud: definition.embed?.readAloud ?? false,
    attachments: renderAttachments(definition.attachments, acceptedBy(deps, agent)),
    followUps: definition.embed?.followUps ?? false,
    conversations: renderStorage(deps.config.conversations, definition.conversations),
  }
}

/** Returns whether the agent's default model accepts a type of attachment. */
function acceptedBy(
  { models }: Pick<Dependencies, 'models'>,
  { definition, policy }: Pick<Agent, 'definition' | 'policy'>,
): (type: AttachmentType) => boolean {
  const route = findDefaultModel(models, { policy, ownModel: definition.model })?.route
  return (type) => route === undefined || models.takes(route, type)
}

export function renderVersionList({
  versions,
  current,
  hasMore,
}: VersionPage): z.output<typeof AgentVersionList> {
  return {
    object: 'list',
    data: versions.map(({ version, name, source, created_at, author }) => ({
      version,
      name,
      yaml: source,
      created_at,
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

/** For a tool without a known schema, the schema of an empty object. */
function renderTool({ tools }: Pick<Dependencies, 'tools'>, tool: AgentTool) {
  const {
    name,
    description = '',
    inputSchema = { type: 'object', properties: {} },
  } = describeTool(tool, tools.find(toolName(tool)))
  return { name, description, inputSchema }
}

/**
 * Returns the definition's model, the model that the agent would use now, or an empty string, in that order.
 */
function modelOf(
  { models }: Pick<Dependencies, 'models'>,
  { definition, policy }: Pick<Agent, 'definition' | 'policy'>,
): string {
  const { model } = definition
  if (model !== undefined) return model
  const current = findDefaultModel(models, { policy, ownModel: undefined })
  return current === undefined ? (models.defaultModel() ?? '') : idOf(models, current.route)
}
