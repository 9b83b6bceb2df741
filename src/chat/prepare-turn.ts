/** One turn of conversation: who answers, with which model and tools, and the request that says so. */
import { type Agent, getOwnAgent } from '../agents/cache.ts'
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
import type { ServerTool } from '../tools/tools.ts'
import type { Dependencies } from './dependencies.ts'
import { type TurnAgent, toAgentRequest } from './persona.ts'
import { type OnCall, type RunTool, TurnTools } from './tool-loop.ts'

/** A request ready for a backend. */
export interface Turn {
  /** Who may answer: the model the turn is for, then its fallbacks. */
  readonly routes: Routes
  /** The chat-API body but for `model`, `stream` and `stream_options`, which the service owns. */
  readonly request: ChatRequest
  /** The tools the model may call in an agent's turn; undefined when nobody restricts it. */
  readonly tools: TurnTools | undefined
  /** Ended by whoever answers the turn. */
  readonly trace: TurnSpan
}

/** What is particular to a turn that an owner tries out. */
export interface TurnTrial {
  /** Makes the agent of the turn from the one that the request names, if any. */
  readonly toAgent: (saved: Agent | undefined) => TurnAgent | undefined
  readonly onCall: OnCall | undefined
}

/**
 * Decides a caller's turn. Decision: 7.
 * @throws ServiceError `model_not_found`, `model_not_allowed`, `invalid_value`, `service_unavailable` when there is no model at all.
 */
export async function prepareTurn(
  context: CallContext<Caller, Dependencies>,
  request: ChatRequest,
  trial?: TurnTrial,
): Promise<Turn> {
  const { deps, caller } = context
  if (caller.kind === 'agent') assertChatApiOnly(request)
  const saved = await findTurnAgent(deps, caller, request.model)
  const agent = trial === undefined ? saved : trial.toAgent(saved)
  const routes = chooseRoutes(deps, agent, request.model)
  const { span } = context.metadata.instrumentation
  if (agent === undefined) return { routes, request, tools: undefined, trace: new TurnSpan(span, undefined) }
  const made = toAgentRequest(agent, request, deps.tools)
  const capped = capOutput(made.request, agent.policy.max_output_tokens)
  const trace = new TurnSpan(span, agent)
  const runTool = createRunTool(context, agent.row.id, trace)
  return { routes, request: capped, tools: new TurnTools(made.toolNames, runTool, trial?.onCall), trace }
}

function createRunTool(
  { deps, caller, metadata }: CallContext<Caller, Dependencies>,
  agentId: string,
  trace: TurnSpan,
): RunTool {
  const who = { agentId, tenantId: caller.tenantId, requestId: metadata.requestId }
  const { line } = metadata.instrumentation
  return async ({ tool, agentSchema }, call, signal) => {
    const span = trace.beginTool(tool, call.id)
    const argumentsText = call.function?.arguments ?? '{}'
    try {
      return await runTool(deps, { tool, argumentsText, agentSchema, span, line }, { ...who, signal })
    } finally {
      span?.end()
    }
  }
}

/** The body for the backend. Usage is always asked of a stream; the caller sees it only on request. Decision: 7 (Streams). */
export function backendBody(request: ChatRequest, model: string, isStream: boolean): Record<string, unknown> {
  const body = { ...request, model, stream: isStream }
  if (!isStream) return body
  return { ...body, stream_options: { ...request.stream_options, include_usage: true } }
}

/** The key's own agent, or the one a parent key names as a model. */
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

/** The model the caller names, or the agent's default; behind it the agent's fallbacks. */
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
  // An operator's default that no backend has is named by the refusal.
  if (wishes.policy.allowed_models.length === 0) return models.route(standard)
  throw new ServiceError(
    'service_unavailable',
    'None of the models this agent may use is there at the moment.',
  )
}

/** The agent's bound on an answer, in the field the caller used. Decision: 7 (`max_tokens`). */
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

/** The span of an agent's turn, or where no agent answers that of the request; neither where nobody traces. */
export class TurnSpan {
  /** What calls and tools are part of. */
  readonly span: TraceSpan | undefined
  private readonly isOwn: boolean

  constructor(request: TraceSpan | undefined, agent: TurnAgent | undefined) {
    this.isOwn = agent !== undefined
    this.span = agent === undefined ? request : request && beginAgent(request, agent)
  }

  /** A tool that runs here. */
  beginTool({ name, origin }: ServerTool, callId: string): TraceSpan | undefined {
    return this.span?.begin(`execute_tool ${name}`, 'internal', {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': name,
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': callId,
      'parley.tool.origin': origin,
    })
  }

  /** The turn is over; `thrown` is what ended it early. */
  end(thrown?: unknown): void {
    if (!this.isOwn || this.span === undefined) return
    if (thrown !== undefined) this.span.fail(toServiceError(thrown).reason)
    this.span.end()
  }
}

function beginAgent(request: TraceSpan, { row, definition }: TurnAgent): TraceSpan {
  const attributes: SpanAttributes = {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.provider.name': 'parley',
    'gen_ai.agent.id': row.id,
    'gen_ai.agent.name': definition.name,
  }
  return request.begin(`invoke_agent ${definition.name}`, 'internal', attributes)
}
