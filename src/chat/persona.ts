/** Turns a client's chat request into the agent's: its instructions, its temperature, the tools it allows. */

import type { Agent } from '../agents/cache.ts'
import {
  type AgentDefinition,
  type AgentTool,
  type DescribedTool,
  describeTool,
  type PageTools,
  toolName,
} from '../agents/definition.ts'
import { ServiceError } from '../lib/errors.ts'
import type { JsonSchema } from '../lib/formats/json-schema.ts'
import type { ChatMessage, ChatRequest, ChatTool } from '../providers/chat-api.ts'
import { pageToolPrefix, type ServerTool, type Toolbox } from '../tools/tools.ts'
import type { OwnTool, ToolNames } from './tool-loop.ts'

/** Marks a client's own system text. */
const PAGE_CONTEXT = '[Context provided by the page, not by the user]\n'

/** What a turn needs of its agent. */
export type TurnAgent = Pick<Agent, 'definition' | 'policy'> & { readonly row: Pick<Agent['row'], 'id'> }

export interface AgentRequest {
  readonly request: ChatRequest
  readonly toolNames: ToolNames
}

/** What stays the same for every request of an agent until the server's tools change. */
interface Persona {
  readonly serverTools: readonly ServerTool[]
  readonly system: ChatMessage
  readonly tools: ReadonlyMap<string, ChatTool>
  /** Those of the tools that run on this server. */
  readonly own: ReadonlyMap<string, OwnTool>
  /** Tools without a description: the client's own tool of that name describes them. */
  readonly bareNames: ReadonlySet<string>
}

const personas = new WeakMap<TurnAgent, Persona>()

/**
 * @throws ServiceError `invalid_value` for `functions`, which the tool rules cannot see, for a `tool_choice` of a tool the agent does not
 * have, and for several choices where tools run on this server: they cannot continue as one conversation.
 */
export function toAgentRequest(agent: TurnAgent, request: ChatRequest, toolbox: Toolbox): AgentRequest {
  for (const param of ['functions', 'function_call']) {
    if (request[param] !== undefined && request[param] !== null) {
      throw new ServiceError('invalid_value', `${param}: use tools with an agent`, { param })
    }
  }
  const persona = personaOf(agent, toolbox)
  if (persona.own.size > 0 && (request.n ?? 1) > 1) {
    const problem = 'must be 1 with this agent, some of whose tools run on the server'
    throw new ServiceError('invalid_value', `n: ${problem}`, { param: 'n' })
  }
  const tools = mergeTools(persona, agent.definition.pageTools, request.tools ?? [])
  const { tools: _tools, tool_choice: choice, parallel_tool_calls: parallel, ...rest } = request
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
      ...rest,
      ...toolFields,
      temperature: agent.definition.temperature,
      messages: [persona.system, ...request.messages.map(withoutAuthority)],
    },
    toolNames: {
      callers: new Set([...tools.keys()].filter((name) => !persona.own.has(name))),
      own: persona.own,
    },
  }
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
    if (tool !== undefined) own.set(name, { tool, agentSchema: schemaOf(given) })
  }
  const bareNames = definition.tools
    .filter((tool) => typeof tool === 'string')
    .filter((name) => !own.has(name))
  const system: ChatMessage = { role: 'system', content: renderSystem(definition) }
  const persona = { serverTools, system, tools, own, bareNames: new Set(bareNames) }
  personas.set(agent, persona)
  return persona
}

function schemaOf(tool: AgentTool): JsonSchema | undefined {
  return typeof tool === 'string' ? undefined : tool.inputSchema
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

/** Only the agent speaks as the system: a page's text must not count as its instructions. */
function withoutAuthority(message: ChatMessage): ChatMessage {
  if (message.role !== 'system' && message.role !== 'developer') return message
  const { content } = message
  const marked =
    typeof content === 'string' ? PAGE_CONTEXT + content : [{ type: 'text', text: PAGE_CONTEXT }, ...content]
  return { ...message, role: 'user', content: marked }
}

/** The agent's tools and the client's allowed ones, by name. */
function mergeTools(
  { tools, bareNames }: Persona,
  pageTools: PageTools,
  sent: readonly ChatTool[],
): Map<string, ChatTool> {
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

/** Takes names without the prefix. */
function isPageToolAllowed(pageTools: PageTools, name: string): boolean {
  if (pageTools === 'all') return true
  return 'restricted' in pageTools ? pageTools.restricted.includes(name) : !pageTools.blocked.includes(name)
}

function assertChoosable(choice: ChatRequest['tool_choice'], tools: ReadonlyMap<string, ChatTool>): void {
  const absent = namesIn(choice).find((name) => !tools.has(name))
  if (absent === undefined && !(choice === 'required' && tools.size === 0)) return
  const what =
    absent === undefined ? 'this agent has no tool to call' : `'${absent}' is no tool of this agent`
  throw new ServiceError('invalid_value', `tool_choice: ${what}`, { param: 'tool_choice' })
}

/** The tools a choice names, in any of its forms. */
function namesIn(choice: ChatRequest['tool_choice']): string[] {
  if (typeof choice !== 'object' || choice === null) return []
  const { allowed_tools: allowed, function: called, custom } = choice
  return [called, custom, ...(allowed?.tools ?? []).map((tool) => tool.function ?? tool.custom)]
    .map((named) => named?.name)
    .filter((name) => name !== undefined)
}
