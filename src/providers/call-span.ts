/** Creates spans for model calls with OpenTelemetry's generative AI attributes, without message text. */
import { noTokens, readTokens } from '../prices/cost.ts'
import type { SpanAttributes, TraceSpan } from '../telemetry/tracing.ts'
import type { AnswerNames, ChatRequest, Usage } from './chat-api.ts'
import { nameFailure } from './failures.ts'
import { BackendFailure, type ModelRoute } from './provider.ts'

export type BeginCall = (route: ModelRoute, attempt: number) => TraceSpan | undefined

export function beginChatCalls(parent: TraceSpan | undefined, request: ChatRequest): BeginCall {
  return (route, attempt) => parent && beginCall(parent, 'chat', route, attempt, toRequestAttributes(request))
}

export function beginEmbeddingCalls(parent: TraceSpan | undefined, dimensions: unknown): BeginCall {
  return (route, attempt) =>
    parent &&
    beginCall(parent, 'embeddings', route, attempt, {
      'gen_ai.embeddings.dimension.count': typeof dimensions === 'number' ? dimensions : undefined,
    })
}

function beginCall(
  parent: TraceSpan,
  operation: 'chat' | 'embeddings',
  { backend, model }: ModelRoute,
  attempt: number,
  attributes: SpanAttributes,
): TraceSpan {
  return parent.begin(`${operation} ${model}`, backend.address === undefined ? 'internal' : 'client', {
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': backend.name,
    'gen_ai.request.model': model,
    'server.address': backend.address?.host,
    'server.port': backend.address?.port,
    'parley.attempt': attempt,
    ...attributes,
  })
}

function toRequestAttributes(request: ChatRequest): SpanAttributes {
  const { max_tokens: most, max_completion_tokens: newer, n, seed } = request
  return {
    'gen_ai.request.max_tokens': newer ?? most ?? undefined,
    'gen_ai.request.temperature': request.temperature ?? undefined,
    'gen_ai.request.top_p': request.top_p ?? undefined,
    'gen_ai.request.frequency_penalty': request.frequency_penalty ?? undefined,
    'gen_ai.request.presence_penalty': request.presence_penalty ?? undefined,
    'gen_ai.request.choice.count': n == null || n === 1 ? undefined : n,
    'gen_ai.request.seed': typeof seed === 'number' ? seed : undefined,
  }
}

export function toAnswerAttributes(
  names: Pick<AnswerNames, 'id' | 'model'> | undefined,
  finishReasons: readonly string[],
  usage: Usage | undefined,
): SpanAttributes {
  return {
    'gen_ai.response.id': names?.id,
    'gen_ai.response.model': names?.model,
    'gen_ai.response.finish_reasons': finishReasons.length === 0 ? undefined : finishReasons,
    'gen_ai.usage.input_tokens': usage?.prompt_tokens,
    'gen_ai.usage.output_tokens': usage?.completion_tokens,
    ...(usage?.prompt_tokens_details != null || usage?.completion_tokens_details != null
      ? toDetailAttributes(usage)
      : undefined),
  }
}

function toDetailAttributes(usage: Usage): SpanAttributes {
  const { cached, cacheWrite, reasoning } = readTokens(usage) ?? noTokens
  return {
    'gen_ai.usage.cache_read.input_tokens': cached || undefined,
    'gen_ai.usage.cache_creation.input_tokens': cacheWrite || undefined,
    'gen_ai.usage.reasoning.output_tokens': reasoning || undefined,
  }
}

export function failCall(span: TraceSpan | undefined, thrown: unknown): void {
  span?.fail(thrown instanceof BackendFailure ? nameFailure(thrown) : 'cancelled')
}
