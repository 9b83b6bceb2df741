/** Creates embeddings with a model provider, and forwards its response unchanged where possible. */

import type { Dependencies } from '../chat/dependencies.ts'
import { ServiceError } from '../lib/errors.ts'
import { type CallContext, type Caller, JsonBytes } from '../operations/operation.ts'
import { beginEmbeddingCalls } from '../providers/call-span.ts'
import type { Usage } from '../providers/chat-api.ts'
import { toCallerError } from '../providers/failures.ts'
import { Attempts, Deadline } from '../providers/retry.ts'
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
  const usage = await deps.usage.begin({
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
    const { pieces, tokens } = await embed(deps, attempts, request, client)
    usage.used(tokens === undefined ? undefined : toUsage(tokens))
    await usage.end('ok')
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
  attempts: Attempts,
  request: EmbeddingsRequest,
  client: AbortSignal,
): Promise<EmbeddedList> {
  const { backendTotalMs } = config.timings
  const deadline = new Deadline(clock, client, { firstEventMs: backendTotalMs, totalMs: backendTotalMs })
  try {
    return await attempts.run(deadline, async ({ backend, model }, span, signal) => {
      const body = { ...request, model }
      const pieces = await backend.embed({ body, signal, trace: span?.headers })
      const list = toWantedList(pieces, {
        count: countInputs(request.input),
        encoding: request.encoding_format ?? 'float',
        model,
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
