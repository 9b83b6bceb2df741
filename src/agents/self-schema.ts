/** Defines the agent fields that an agent key may read, and renders them. */
import { z } from 'zod'
import { findDefaultModel } from '../models/policy.ts'
import type { Agent } from './cache.ts'
import { type AgentTool, describeTool, PageTools, toolName } from './definition.ts'
import {
  AttachmentsView,
  type AttachmentType,
  DisclaimerView,
  renderAttachments,
  renderDisclaimer,
  renderStorage,
  StorageView,
} from './definition-parts.ts'
import type { Dependencies } from './dependencies.ts'
import { agentId, modelOf } from './schema.ts'
import { ThemeView } from './theme.ts'
import { IdentityMode } from './visitor-rules.ts'

/** Never includes the instructions, because agent keys are public. */
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
    imageHosts: z
      .array(z.string())
      .meta({ description: 'Hosts from which the widget loads the images in answers.' }),
    conversations: StorageView,
    identity: IdentityMode,
  })
  .meta({ id: 'AgentSelf' })

type DescribedAgent = Pick<Agent, 'definition' | 'policy'> & { readonly row: Pick<Agent['row'], 'id'> }

export function renderAgentSelf(
  deps: Pick<Dependencies, 'models' | 'tools' | 'config'>,
  agent: DescribedAgent,
): z.output<typeof AgentSelf> {
  const { definition, row } = agent
  const { conversations, limits } = deps.config
  const isStored = conversations.isAllowed && definition.conversations !== undefined
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
    attachments: renderAttachments(definition.attachments, acceptedBy(deps, agent), {
      isStored,
      maxUploadBytes: limits.maxUploadBytes,
    }),
    followUps: definition.embed?.followUps ?? false,
    imageHosts: definition.embed?.imageHosts ?? [],
    conversations: renderStorage(conversations, definition.conversations),
    identity: definition.visitors?.identity ?? 'none',
  }
}

/**
 * Returns a function that checks whether the agent's default model accepts a type of attachment. Without a
 * default model, it accepts all types.
 */
function acceptedBy(
  { models }: Pick<Dependencies, 'models'>,
  { definition, policy }: Pick<Agent, 'definition' | 'policy'>,
): (type: AttachmentType) => boolean {
  const route = findDefaultModel(models, { policy, ownModel: definition.model })?.route
  return (type) => route === undefined || models.takes(route, type)
}

/** Renders a tool. A tool without a known schema gets the schema of an empty object. */
function renderTool({ tools }: Pick<Dependencies, 'tools'>, tool: AgentTool) {
  const {
    name,
    description = '',
    inputSchema = { type: 'object', properties: {} },
  } = describeTool(tool, tools.find(toolName(tool)))
  return { name, description, inputSchema }
}
