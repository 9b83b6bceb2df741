/** Prepares one turn of a conversation: which agent, model and tools answer it, and the request they get. */
import { type Agent, getOwnAgent } from '../agents/cache.ts'
import { parseDefinition } from '../agents/definition.ts'
import { ServiceError, toServiceError } from '../lib/errors.ts'
import type { ModelCatalogue } from '../models/catalogue.ts'
import {
  findDefaultModel,
  isRouteAllowed,
  isSameRoute,
  listFallbacks,
  type ModelPolicy,
  type ModelWishes,
  openPolicy,
} from '../models/policy.ts'
import { AGENT_PREFIX } from '../models/schema.ts'
import type { CallContext, Caller } from '../operations/operation.ts'
import { type ChatRequest, chatApiFields } from '../providers/chat-api.ts'
import type { ModelRoute } from '../providers/provider.ts'
import type { Routes } from '../providers/retry.ts'
import type { SpanAttributes, TraceSpan } from '../telemetry/tracing.ts'
import { runTool } from '../tools/run.ts'
import type { Dependencies } from './dependencies.ts'
import { type TurnAgent, toAgentRequest } from './persona.ts'
import type { PlaygroundOptions } from './schema.ts'
import type { TurnTools } from './tool-loop.ts'

/** Stands for the id of an agent that was never saved. */
const UNSAVED_ID = 'draft'

export interface Turn {
  /** The model the turn is for, then its fallbacks. */
  readonly routes: Routes
  /** The chat-API body; `model`, `stream` and `stream_options` are set for each provider. */
  readonly request: ChatRequest
  readonly isStream: boolean
  /** Whether the stream reports the steps of the turn. */
  readonly isTraced: boolean
  /** The saved agent that answers, if any. */
  readonly agentId: string | undefined
  /** The tools the model may call in an agent's turn; undefined where no agent restricts it. */
  readonly tools: TurnTools | undefined
  /** The parent of the turn's spans; undefined without tracing. */
  readonly span: TraceSpan | undefined
  /** Ends the span of an agent's turn. */
  readonly endSpan: (failure: unknown) => void
}

/**
 * Decides who answers a request, and with what.
 * @throws ServiceError `model_not_found`, `model_not_allowed`, `invalid_value`, `service_unavailable` when there is no model at all,
 * `insufficient_permissions` for a draft run with an agent key, which is public.
 */
export async function prepareTurn(
  context: CallContext<Caller, Dependencies>,
  request: ChatRequest,
  options?: PlaygroundOptions,
): Promise<Turn> {
  const { deps, caller } = context
  if (caller.kind === 'agent') {
    assertChatApiOnly(request)
    if (options !== undefined)
      throw new ServiceError('insufficient_permissions', 'trial: needs a parent key', { param: 'trial' })
  }
  const saved = await findTurnAgent(deps, caller, request.model)
  const agent = options?.draft === undefined ? saved : draftAgent(options.draft, saved)
  const turn = {
    routes: chooseRoutes(deps, agent, request.model),
    agentId: saved?.row.id,
    isStream: request.stream === true,
    isTraced: options?.is_traced ?? false,
  }
  const { span } = context.arrival.watch
  if (agent === undefined) return { ...turn, request, tools: undefined, span, endSpan: () => {} }
  const { request: agentRequest, toolNames } = toAgentRequest(agent, request, deps.tools)
  const agentSpan = span && beginAgentSpan(span, agent)
  return {
    ...turn,
    request: capOutput(agentRequest, agent.policy.max_output_tokens),
    tools: { ...toolNames, run: createToolRunner(context, agent.row.id, agentSpan) },
    span: agentSpan,
    endSpan(failure) {
      if (failure !== undefined) agentSpan?.fail(toServiceError(failure).reason)
      agentSpan?.end()
    },
  }
}

/** The agent as that definition would make it; without a saved agent it may use every model. @throws ServiceError `invalid_value`, `too_large` */
function draftAgent(
  { yaml, format }: NonNullable<PlaygroundOptions['draft']>,
  saved: Agent | undefined,
): TurnAgent {
  return {
    row: { id: saved?.row.id ?? UNSAVED_ID },
    definition: parseDefinition(yaml, format),
    policy: saved?.policy ?? openPolicy,
  }
}

function createToolRunner(
  { deps, caller, arrival }: CallContext<Caller, Dependencies>,
  agentId: string,
  agentSpan: TraceSpan | undefined,
): TurnTools['run'] {
  const ids = { agentId, tenantId: caller.tenantId, requestId: arrival.requestId }
  const { line } = arrival.watch
  return async ({ tool, agentSchema }, call, signal) => {
    const span = agentSpan?.begin(`execute_tool ${tool.name}`, 'internal', {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': tool.name,
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': call.id,
      'parley.tool.origin': tool.origin,
    })
    const argumentsText = call.function?.arguments ?? '{}'
    try {
      return await runTool(deps, { tool, argumentsText, agentSchema, span, line }, { ...ids, signal })
    } finally {
      span?.end()
    }
  }
}

/** The body for a provider. A stream is always asked for its usage; the client gets it only on request. */
export function backendBody(request: ChatRequest, model: string, isStream: boolean): Record<string, unknown> {
  const body = { ...request, model, stream: isStream }
  if (!isStream) return body
  return { ...body, stream_options: { ...request.stream_options, include_usage: true } }
}

/** The agent key's own agent, or the one a parent key names as a model. */
async function findTurnAgent(
  deps: Dependencies,
  caller: Caller,
  model: string | null | undefined,
): Promise<Agent | undefined> {
  const named = model?.startsWith(AGENT_PREFIX) ? model.slice(AGENT_PREFIX.length) : undefined
  if (caller.kind === 'agent') {
    if (named !== undefined && named !== caller.agentId) {
      throw new ServiceError('model_not_allowed', 'This key chats with its own agent only.', {
        param: 'model',
      })
    }
    return getOwnAgent(deps, caller)
  }
  if (named === undefined) return undefined
  const agent = await deps.agents.find(caller.tenantId, named)
  if (agent !== undefined) return agent
  throw new ServiceError('model_not_found', `The model '${model}' does not exist here.`, { param: 'model' })
}

/** The model the client names, or the agent's default, followed by the agent's fallbacks. */
function chooseRoutes(
  { models }: Pick<Dependencies, 'models'>,
  agent: TurnAgent | undefined,
  named: string | null | undefined,
): Routes {
  const policy = agent?.policy ?? openPolicy
  const first =
    named == null || named.startsWith(AGENT_PREFIX)
      ? chooseDefault(models, { policy, ownModel: agent?.definition.model })
      : getNamed(models, policy, named)
  if (policy.fallback_models.length === 0) return [first]
  return [first, ...listFallbacks(models, policy).filter((route) => !isSameRoute(route, first))]
}

function getNamed(models: ModelCatalogue, policy: ModelPolicy, id: string): ModelRoute {
  const route = models.route(id)
  if (isRouteAllowed(policy, route)) return route
  throw new ServiceError('model_not_allowed', `This agent may not use the model '${id}'.`, { param: 'model' })
}

function chooseDefault(models: ModelCatalogue, wishes: ModelWishes): ModelRoute {
  const chosen = findDefaultModel(models, wishes)
  if (chosen !== undefined) return chosen.route
  const standard = models.defaultModel()
  if (standard === undefined)
    throw new ServiceError('service_unavailable', 'No backend has said yet which models it has.')
  // Reports the operator's default that no provider has.
  if (wishes.policy.allowed_models.length === 0) return models.route(standard)
  throw new ServiceError(
    'service_unavailable',
    'None of the models this agent may use is there at the moment.',
  )
}

/** Applies the agent's limit to the field the client used. */
function capOutput(request: ChatRequest, most: number | null): ChatRequest {
  if (most === null) return request
  const { max_tokens: asked, max_completion_tokens: newer } = request
  return {
    ...request,
    ...(newer == null || asked != null ? { max_tokens: Math.min(asked ?? most, most) } : {}),
    ...(newer == null ? {} : { max_completion_tokens: Math.min(newer, most) }),
  }
}

function assertChatApiOnly(request: ChatRequest): void {
  const param = Object.keys(request).find((field) => !chatApiFields.has(field))
  if (param !== undefined) {
    throw new ServiceError('invalid_value', `${param}: is not a field of the chat API`, {
      param,
      code: 'unknown_parameter',
    })
  }
}

function beginAgentSpan(request: TraceSpan, { row, definition }: TurnAgent): TraceSpan {
  const attributes: SpanAttributes = {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.provider.name': 'parley',
    'gen_ai.agent.id': row.id,
    'gen_ai.agent.name': definition.name,
  }
  return request.begin(`invoke_agent ${definition.name}`, 'internal', attributes)
}
