/** Creates embeddings with a model provider, and forwards its response unchanged where possible. */

import type { Dependencies } from '../chat/dependencies.ts'
import { ServiceError } from '../lib/errors.ts'
import { type CallContext, type Caller, JsonBytes } from '../operations/operation.ts'
import { renderFixedAmount } from '../prices/money.ts'
import { beginEmbeddingCalls } from '../providers/call-span.ts'
import type { Usage } from '../providers/chat-api.ts'
import { nameFailure, toCallerError, toFailedCall } from '../providers/failures.ts'
import { BackendFailure, type ModelRoute } from '../providers/provider.ts'
import { Attempts, Deadline } from '../providers/retry.ts'
import type { TraceSpan } from '../telemetry/tracing.ts'
import type { UsageRecord } from '../usage/tracker.ts'
import { type EmbeddedList, toWantedList } from './list.ts'
import { countInputs, type EmbeddingsRequest } from './schema.ts'

/** Creates embeddings. Records the usage even if the call fails. @throws ServiceError */
export async function createEmbeddings(
  context: CallContext<Caller, Dependencies>,
  request: EmbeddingsRequest,
  client: AbortSignal,
): Promise<JsonBytes> {
  const { deps } = context
  const route = deps.models.route(request.model ?? getDefaultModel(deps))
  const usage = deps.usage.begin({
    operation: 'embeddings',
    requestId: context.metadata.requestId,
    tenantId: context.caller.tenantId,
    agentId: undefined,
    provider: route.backend.name,
    model: route.model,
    isStreamed: false,
    request: { input: request.input },
  })
  const { span } = context.metadata.instrumentation
  const attempts = new Attempts(deps, [route], beginEmbeddingCalls(span, request.dimensions))
  try {
    const { pieces, tokens } = await embed(deps, usage, { attempts, request, client })
    usage.used(tokens === undefined ? undefined : toUsage(tokens))
    await usage.end('ok')
    if (usage.cost.isPriced && context.caller.kind === 'parent')
      context.setHeader('X-Parley-Cost', renderFixedAmount(usage.cost.total))
    context.setHeader('X-Parley-Provider', route.backend.name)
    context.setHeader('X-Parley-Attempts', String(attempts.count))
    return new JsonBytes(pieces)
  } catch (thrown) {
    await usage.fail(thrown, client)
    throw thrown
  }
}

function toUsage(tokens: number): Usage {
  return { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens }
}

async function embed(
  { config, clock }: Pick<Dependencies, 'config' | 'clock'>,
  usage: UsageRecord,
  {
    attempts,
    request,
    client,
  }: { readonly attempts: Attempts; readonly request: EmbeddingsRequest; readonly client: AbortSignal },
): Promise<EmbeddedList> {
  const { backendTotalMs } = config.timings
  const deadline = new Deadline(clock, client, { firstEventMs: backendTotalMs, totalMs: backendTotalMs })
  try {
    return await attempts.run(deadline, async ({ backend, model }, span, signal) => {
      usage.calling(backend, model, { input: request.input })
      await usage.reserve({ input: request.input }, signal)
      const list = await ask({ ...request, model }, { backend, signal, span }).catch((thrown) => {
        usage.failCall(toFailedCall(thrown, false, backend))
        if (thrown instanceof BackendFailure)
          usage.addFailedAttempt({ provider: backend.name, model, reason: nameFailure(thrown) })
        throw thrown
      })
      span?.set({ 'gen_ai.usage.input_tokens': list.tokens })
      span?.end()
      return list
    })
  } catch (thrown) {
    throw toCallerError(thrown)
  } finally {
    deadline.release()
  }
}

async function ask(
  body: EmbeddingsRequest & { readonly model: string },
  {
    backend,
    signal,
    span,
  }: Pick<ModelRoute, 'backend'> & { readonly signal: AbortSignal; readonly span: TraceSpan | undefined },
): Promise<EmbeddedList> {
  const pieces = await backend.embed({ body, signal, trace: span?.headers })
  return toWantedList(pieces, {
    count: countInputs(body.input),
    encoding: body.encoding_format ?? 'float',
    model: body.model,
  })
}

function getDefaultModel({ models }: Pick<Dependencies, 'models'>): string {
  const model = models.defaultEmbeddingModel()
  if (model !== undefined) return model
  throw models.list().length === 0
    ? new ServiceError(
        'service_unavailable',
        'No model provider has reported its models yet; try again later.',
      )
    : new ServiceError('model_not_found', 'model is required, because no provider lists an embedding model', {
        param: 'model',
      })
}
