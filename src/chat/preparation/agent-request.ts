/** Adds an agent's instructions, temperature and tools to a request. */
import type { Agent } from '../../agents/cache.ts'
import {
  type AgentDefinition,
  type DescribedTool,
  describeTool,
  type PageTools,
  toolName,
} from '../../agents/definition.ts'
import type { AttachmentType } from '../../agents/definition-parts.ts'
import { ServiceError } from '../../lib/errors.ts'
import type { ModelCatalogue } from '../../models/catalogue.ts'
import type { ChatMessage, ChatRequest, ChatTool } from '../../providers/chat-api.ts'
import type { ModelRoute } from '../../providers/provider.ts'
import { pageToolPrefix, type ServerTool, type Toolbox } from '../../tools/tools.ts'
import { checkMessages } from '../attachments/attachments.ts'
import type { OwnTool, ToolNames } from '../tool-loop.ts'

const PAGE_CONTEXT = '[Context provided by the page, not by the user]\n'

/** A saved agent, or a draft of one. */
export type TurnAgent = Pick<Agent, 'definition' | 'policy'> & { readonly row: Pick<Agent['row'], 'id'> }

/**
 * The parts of a request that depend only on the agent and the server's tools, so that they can be cached.
 */
interface Persona {
  readonly serverTools: readonly ServerTool[]
  readonly system: ChatMessage
  readonly tools: ReadonlyMap<string, ChatTool>
  readonly own: ReadonlyMap<string, OwnTool>
  /** Tools that the definition only names; their descriptions come from the client's request. */
  readonly bareNames: ReadonlySet<string>
}

const personas = new WeakMap<TurnAgent, Persona>()

/** Checks the attachments if the agent has rules for them; otherwise forwards them. @throws ServiceError */
export function withCheckedAttachments(
  models: Pick<ModelCatalogue, 'takes'>,
  { definition: { attachments: rules } }: TurnAgent,
  route: ModelRoute,
  request: ChatRequest,
): ChatRequest {
  if (rules === undefined) return request
  const modelTakes = (type: AttachmentType) => models.takes(route, type)
  return { ...request, messages: checkMessages(request.messages, { rules, model: route.model, modelTakes }) }
}

/**
 * Adds the agent's instructions, temperature and tools to a request.
 * @throws ServiceError `invalid_value` for fields that would bypass the agent's tools, and for `n` above 1
 * with server-side tools.
 */
export function toAgentRequest(
  agent: TurnAgent,
  request: ChatRequest,
  toolbox: Toolbox,
): { request: ChatRequest; toolNames: ToolNames } {
  for (const param of ['functions', 'function_call']) {
    if (request[param] !== undefined && request[param] !== null) {
      throw new ServiceError('invalid_value', `${param}: is not supported with an agent; use tools instead`, {
        param,
      })
    }
  }
  const persona = personaOf(agent, toolbox)
  if (persona.own.size > 0 && (request.n ?? 1) > 1) {
    const problem = 'must be 1, because this agent has tools that run on the server'
    throw new ServiceError('invalid_value', `n: ${problem}`, { param: 'n' })
  }
  const tools = mergeTools(persona, agent.definition.pageTools, request.tools ?? [])
  const { tool_choice: choice, parallel_tool_calls: parallel } = request
  assertChoosable(choice, tools)
  const toolFields =
    tools.size === 0
      ? {}
      : {
          tools: [...tools.values()],
          ...(choice == null ? {} : { tool_choice: choice }),
          ...(parallel == null ? {} : { parallel_tool_calls: parallel }),
        }
  return {
    request: {
      ...withoutToolFields(request),
      ...toolFields,
      temperature: agent.definition.temperature,
      messages: [persona.system, ...request.messages.map(withoutAuthority)],
    },
    toolNames: { callers: namesOfCaller(tools, persona.own), own: persona.own },
  }
}

/** Removes the tool fields. Does not copy a request without them, because copying is slow. */
function withoutToolFields(request: ChatRequest): ChatRequest {
  const { tools, tool_choice: choice, parallel_tool_calls: parallel } = request
  if (tools === undefined && choice === undefined && parallel === undefined) return request
  const { tools: _tools, tool_choice: _choice, parallel_tool_calls: _parallel, ...rest } = request
  return rest
}

function namesOfCaller(tools: ReadonlyMap<string, ChatTool>, own: Persona['own']): ReadonlySet<string> {
  const names = new Set<string>()
  for (const name of tools.keys()) if (!own.has(name)) names.add(name)
  return names
}

function personaOf(agent: TurnAgent, toolbox: Toolbox): Persona {
  const known = personas.get(agent)
  const serverTools = toolbox.list()
  if (known?.serverTools === serverTools) return known
  const { definition } = agent
  const tools = new Map<string, ChatTool>()
  const own = new Map<string, OwnTool>()
  for (const given of definition.tools) {
    const name = toolName(given)
    const tool = toolbox.find(name)
    tools.set(name, renderTool(describeTool(given, tool)))
    const agentSchema = typeof given === 'string' ? undefined : given.inputSchema
    if (tool !== undefined) own.set(name, { tool, agentSchema })
  }
  const bareNames = definition.tools
    .filter((tool) => typeof tool === 'string')
    .filter((name) => !own.has(name))
  const system: ChatMessage = { role: 'system', content: renderSystem(definition) }
  const persona = { serverTools, system, tools, own, bareNames: new Set(bareNames) }
  personas.set(agent, persona)
  return persona
}

function renderSystem({ instructions, behavior }: AgentDefinition): string {
  const rules = [
    ...(behavior?.tone === undefined ? [] : [`Tone: ${behavior.tone}`]),
    ...(behavior?.language === undefined ? [] : [`Answer in this language: ${behavior.language}`]),
    ...(behavior?.rules ?? []),
  ]
  if (rules.length === 0) return instructions
  return `${instructions.trimEnd()}\n\nRules:\n${rules.map((rule) => `- ${rule}`).join('\n')}`
}

function renderTool({ name, description, inputSchema }: DescribedTool): ChatTool {
  return {
    type: 'function',
    function: {
      name,
      ...(description === undefined ? {} : { description }),
      parameters: { type: 'object', properties: {}, ...inputSchema },
    },
  }
}

/** Turns system messages into user messages, so that the model does not treat them as instructions. */
function withoutAuthority(message: ChatMessage): ChatMessage {
  if (message.role !== 'system' && message.role !== 'developer') return message
  const { content } = message
  const marked =
    typeof content === 'string' ? PAGE_CONTEXT + content : [{ type: 'text', text: PAGE_CONTEXT }, ...content]
  return { ...message, role: 'user', content: marked }
}

function mergeTools(
  { tools, bareNames }: Persona,
  pageTools: PageTools,
  sent: readonly ChatTool[],
): ReadonlyMap<string, ChatTool> {
  if (sent.length === 0) return tools
  const merged = new Map(tools)
  for (const tool of sent) {
    const name = tool.function?.name
    if (name === undefined) continue
    const isAllowed = name.startsWith(pageToolPrefix)
      ? isPageToolAllowed(pageTools, name.slice(pageToolPrefix.length))
      : tools.size === 0 || bareNames.has(name)
    if (isAllowed) merged.set(name, tool)
  }
  return merged
}

function isPageToolAllowed(pageTools: PageTools, name: string): boolean {
  if (pageTools === 'all') return true
  return 'restricted' in pageTools ? pageTools.restricted.includes(name) : !pageTools.blocked.includes(name)
}

function assertChoosable(choice: ChatRequest['tool_choice'], tools: ReadonlyMap<string, ChatTool>): void {
  const absent = namesIn(choice).find((name) => !tools.has(name))
  if (absent === undefined && !(choice === 'required' && tools.size === 0)) return
  const what =
    absent === undefined
      ? 'requires a tool call, but this agent has no tools'
      : `'${absent}' is not a tool of this agent`
  throw new ServiceError('invalid_value', `tool_choice: ${what}`, { param: 'tool_choice' })
}

function namesIn(choice: ChatRequest['tool_choice']): string[] {
  if (typeof choice !== 'object' || choice === null) return []
  const { allowed_tools: allowed, function: called, custom } = choice
  return [called, custom, ...(allowed?.tools ?? []).map((tool) => tool.function ?? tool.custom)]
    .map((named) => named?.name)
    .filter((name) => name !== undefined)
}
