/** Prepares one turn: selects the agent, models and tools, and builds the request for the model. */
import { type Agent, getOwnAgent } from '../agents/cache.ts'
import {
  type AgentDefinition,
  type DescribedTool,
  describeTool,
  type PageTools,
  parseDefinition,
  toolName,
} from '../agents/definition.ts'
import type { AttachmentType } from '../agents/definition-parts.ts'
import type { History } from '../conversations/reader.ts'
import { memoizeTurnVisitor } from '../conversations/visible.ts'
import { ServiceError, toServiceError } from '../lib/errors.ts'
import { chooseRoutes, explainRoutes, openPolicy } from '../models/policy.ts'
import { AGENT_PREFIX } from '../models/schema.ts'
import { chargeRequest, DEFINITION_BYTES_PER_REQUEST } from '../operations/access.ts'
import type { CallContext, Caller, CallVisitor } from '../operations/operation.ts'
import type { ChatMessage, ChatRequest, ChatTool } from '../providers/chat-api.ts'
import type { ModelRoute } from '../providers/provider.ts'
import type { Routes } from '../providers/retry.ts'
import type { TraceSpan } from '../telemetry/tracing.ts'
import { runTool } from '../tools/run.ts'
import { pageToolPrefix, type ServerTool, type Toolbox, toToolVisitor } from '../tools/tools.ts'
import { checkMessages } from './attachments/attachments.ts'
import type { Dependencies } from './dependencies.ts'
import { listPolicyEffects, type TurnReasons } from './diagnostics/turn-diagnostics.ts'
import { capOutput } from './output-limit.ts'
import { toPublicRequest } from './public-request.ts'
import type { PlaygroundOptions } from './schema.ts'
import type { OwnTool, ToolNames, TurnTools } from './tool-loop.ts'

export { assertParts } from './attachments/attachments.ts'

const PAGE_CONTEXT = '[Context provided by the page, not by the user]\n'
const UNSAVED_ID = 'draft'

export interface Turn {
  readonly routes: Routes
  /** The chat API body, before `model`, `stream` and `stream_options` are set for a provider. */
  readonly request: ChatRequest
  readonly isStream: boolean
  readonly isTraced: boolean
  /** Finds the visitor on whose behalf the turn runs. @throws ServiceError `visitor_being_erased` */
  readonly findVisitor: () => Promise<CallVisitor | undefined>
  readonly agentId: string | undefined
  readonly agentVersion: number | undefined
  /** The agent's storage settings; undefined if it stores no conversations. */
  readonly conversations: AgentDefinition['conversations']
  /** The tools that the model may call; undefined without an agent, which allows all tools in the request. */
  readonly tools: TurnTools | undefined
  readonly span: TraceSpan | undefined
  readonly endSpan: (failure: unknown) => void
  /** The stored items that come before the turn's input in the request. */
  readonly history?: History
  /** Explains the route, and the agent's rules that changed the request. */
  readonly explain: () => TurnReasons
}

/**
 * Selects the agent, models and tools for a request.
 * @throws ServiceError for a model, field or option that the caller may not use.
 */
export function prepareTurn(
  context: CallContext<Caller, Dependencies>,
  sent: ChatRequest,
  options?: PlaygroundOptions,
): Turn | Promise<Turn> {
  const { deps, caller } = context
  if (options !== undefined) return preparePlaygroundTurn(context, sent, options)
  const request = caller.kind === 'agent' ? toPublicRequest(sent) : sent
  const found = findTurnAgent(deps, caller, request.model)
  // Returns a cached agent without a promise, to save CPU time.
  return found instanceof Promise
    ? found.then((saved) => createTurn(context, request, { saved, agent: saved }))
    : createTurn(context, request, { saved: found, agent: found })
}

async function preparePlaygroundTurn(
  context: CallContext<Caller, Dependencies>,
  request: ChatRequest,
  options: PlaygroundOptions,
): Promise<Turn> {
  const { deps, caller } = context
  const { draft } = options
  if (caller.kind === 'agent')
    throw new ServiceError('insufficient_permissions', 'trial: requires a parent key', { param: 'trial' })
  if (draft !== undefined)
    await chargeRequest(context, caller, Math.ceil(draft.yaml.length / DEFINITION_BYTES_PER_REQUEST))
  const saved = await findTurnAgent(deps, caller, request.model)
  const agent: TurnAgent | undefined =
    draft === undefined
      ? saved
      : {
          row: { id: saved?.row.id ?? UNSAVED_ID },
          definition: parseDefinition(draft.yaml, draft.format),
          policy: saved?.policy ?? openPolicy,
        }
  return createTurn(context, request, { saved, agent, options })
}

interface TurnSource {
  readonly saved: Agent | undefined
  /** The saved agent or a draft of it. */
  readonly agent: TurnAgent | undefined
  readonly options?: PlaygroundOptions
}

function createTurn(
  context: CallContext<Caller, Dependencies>,
  request: ChatRequest,
  { saved, agent, options }: TurnSource,
): Turn {
  const { deps } = context
  const wishes = { policy: agent?.policy ?? openPolicy, ownModel: agent?.definition.model }
  const named = options?.model ?? (request.model?.startsWith(AGENT_PREFIX) ? undefined : request.model)
  const turn = {
    routes: chooseRoutes(deps.models, wishes, named),
    agentId: saved?.row.id,
    agentVersion: saved?.row.version,
    conversations: options?.draft === undefined ? saved?.definition.conversations : undefined,
    isStream: request.stream === true,
    isTraced: options?.is_traced ?? false,
    findVisitor: memoizeTurnVisitor(context, request),
  }
  const { span } = context.metadata.instrumentation
  const explainRoute = () => explainRoutes(deps.models, wishes, named)
  if (agent === undefined) {
    const explain = () => ({ route: explainRoute(), policy: [] })
    return { ...turn, request, tools: undefined, span, endSpan: ignore, explain }
  }
  const { request: agentRequest, toolNames } = toAgentRequest(
    agent,
    withCheckedAttachments(deps, agent, turn.routes[0], request),
    deps.tools,
  )
  const agentSpan = span && beginAgentSpan(span, agent)
  const capped = capOutput(agentRequest, agent.policy.max_output_tokens)
  return {
    ...turn,
    request: capped,
    tools: { ...toolNames, run: createToolRunner(context, { ...turn, agentId: agent.row.id }, agentSpan) },
    span: agentSpan,
    endSpan(failure) {
      if (failure !== undefined) agentSpan?.fail(toServiceError(failure).reason)
      agentSpan?.end()
    },
    explain: () => ({ route: explainRoute(), policy: listPolicyEffects(request, capped) }),
  }
}

function ignore(): void {}

/** Checks the attachments if the agent has rules for them; otherwise forwards them. @throws ServiceError */
function withCheckedAttachments(
  { models }: Dependencies,
  { definition: { attachments: rules } }: TurnAgent,
  route: ModelRoute,
  request: ChatRequest,
): ChatRequest {
  if (rules === undefined) return request
  const modelTakes = (type: AttachmentType) => models.takes(route, type)
  return { ...request, messages: checkMessages(request.messages, { rules, model: route.model, modelTakes }) }
}

function createToolRunner(
  { deps, caller, metadata }: CallContext<Caller, Dependencies>,
  { agentId, findVisitor }: Pick<Turn, 'findVisitor'> & { readonly agentId: string },
  agentSpan: TraceSpan | undefined,
): TurnTools['run'] {
  return async ({ tool, agentSchema }, call, signal, onOutcome) => {
    const span = agentSpan?.begin(`execute_tool ${tool.name}`, 'internal', {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': tool.name,
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': call.id,
      'parley.tool.origin': tool.origin,
    })
    const argumentsText = call.function?.arguments ?? '{}'
    try {
      const visitor = toToolVisitor(await findVisitor())
      return await runTool(
        deps,
        { tool, argumentsText, agentSchema, span, line: metadata.instrumentation.line, onOutcome },
        { agentId, tenantId: caller.tenantId, requestId: metadata.requestId, visitor, signal },
      )
    } finally {
      span?.end()
    }
  }
}

/** Builds the provider's request body. Always requests usage for a stream, even if the client does not. */
export function backendBody(request: ChatRequest, model: string, isStream: boolean): Record<string, unknown> {
  const body = { ...request, model, stream: isStream }
  if (!isStream) return body
  return { ...body, stream_options: { ...request.stream_options, include_usage: true } }
}

/** Returns the agent that a request addresses; undefined if it addresses none. @throws ServiceError */
export function findTurnAgent(
  deps: Dependencies,
  caller: Caller,
  model: string | null | undefined,
): Agent | Promise<Agent> | undefined {
  const named = model?.startsWith(AGENT_PREFIX) ? model.slice(AGENT_PREFIX.length) : undefined
  if (caller.kind === 'agent') {
    if (named !== undefined && named !== caller.agentId) {
      throw new ServiceError('model_not_allowed', 'model: an agent key can only use its own agent', {
        param: 'model',
      })
    }
    return getOwnAgent(deps, caller)
  }
  if (named === undefined) return undefined
  const assertFound = (agent: Agent | undefined): Agent => {
    if (agent !== undefined) return agent
    throw new ServiceError('model_not_found', `model: '${model}' does not exist`, { param: 'model' })
  }
  const agent = deps.agents.find(caller.tenantId, named)
  return agent instanceof Promise ? agent.then(assertFound) : assertFound(agent)
}

function beginAgentSpan(request: TraceSpan, { row, definition }: TurnAgent): TraceSpan {
  return request.begin(`invoke_agent ${definition.name}`, 'internal', {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.provider.name': 'parley',
    'gen_ai.agent.id': row.id,
    'gen_ai.agent.name': definition.name,
  })
}

type TurnAgent = Pick<Agent, 'definition' | 'policy'> & { readonly row: Pick<Agent['row'], 'id'> }

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

/**
 * Adds the agent's instructions, temperature and tools to a request.
 * @throws ServiceError `invalid_value` for fields that would bypass the agent's tools, and for `n` above 1
 * with server-side tools.
 */
function toAgentRequest(
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
