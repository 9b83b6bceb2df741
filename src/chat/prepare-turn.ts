/** Prepares one turn: selects the agent, models and tools, and builds the request for the model. */
import { type Agent, getOwnAgent } from '../agents/cache.ts'
import { type AgentDefinition, parseDefinition } from '../agents/definition.ts'
import type { History } from '../conversations/reader.ts'
import { memoizeTurnVisitor } from '../conversations/visible.ts'
import { ServiceError, toServiceError } from '../lib/errors.ts'
import { chooseRoutes, explainRoutes, openPolicy } from '../models/policy.ts'
import { AGENT_PREFIX } from '../models/schema.ts'
import { chargeRequest, DEFINITION_BYTES_PER_REQUEST } from '../operations/access.ts'
import type { CallContext, Caller, CallVisitor } from '../operations/operation.ts'
import type { ChatRequest } from '../providers/chat-api.ts'
import type { Routes } from '../providers/retry.ts'
import type { TraceSpan } from '../telemetry/tracing.ts'
import { runTool } from '../tools/run.ts'
import { toToolVisitor } from '../tools/tools.ts'
import type { Dependencies } from './dependencies.ts'
import { listPolicyEffects, type TurnReasons } from './diagnostics/turn-diagnostics.ts'
import { capOutput } from './output-limit.ts'
import { type TurnAgent, toAgentRequest, withCheckedAttachments } from './preparation/agent-request.ts'
import { toPublicRequest } from './public-request.ts'
import type { PlaygroundOptions } from './schema.ts'
import type { TurnTools } from './tool-loop.ts'

export { assertParts } from './attachments/attachments.ts'

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
  /** An agent whose policy has `degrade`. Other turns do not read their budgets before they begin. */
  readonly degradable: TurnAgent | undefined
  /** True if a budget has determined the routes. */
  readonly isDegraded: boolean
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
    degradable: wishes.policy.degrade.length === 0 ? undefined : agent,
    isDegraded: false,
  }
  const { span } = context.metadata.instrumentation
  const explainRoute = () => explainRoutes(deps.models, wishes, named)
  if (agent === undefined) {
    const explain = () => ({ route: explainRoute(), policy: [] })
    return { ...turn, request, tools: undefined, span, endSpan: ignore, explain }
  }
  const { request: agentRequest, toolNames } = toAgentRequest(
    agent,
    withCheckedAttachments(deps.models, agent, turn.routes[0], request),
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
