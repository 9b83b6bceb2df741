/** Turns texts into vectors: asks the backend of the model, and forwards its own bytes where nothing has to be mended. */
import { Attempts } from '../chat/attempts.ts'
import { Deadline } from '../chat/deadline.ts'
import { toCallerError } from '../chat/failures.ts'
import type { Deps } from '../deps.ts'
import { ServiceError } from '../errors.ts'
import { JsonBytes } from '../rpc/answer.ts'
import type { CallContext } from '../rpc/context.ts'
import { toWantedList } from './list.ts'
import { countInputs, type EmbeddingsRequest } from './schema.ts'

/**
 * One vector for each input, in its order; the headers name who answered. Contract: Embeddings.
 * @throws ServiceError `model_not_found`, `service_unavailable` when no backend has listed a model yet, and as the backend's
 * failure maps to one.
 */
export async function createEmbeddings(
  context: CallContext,
  request: EmbeddingsRequest,
  caller: AbortSignal,
): Promise<JsonBytes> {
  const { deps } = context
  const { timings } = deps.config
  const attempts = new Attempts(deps, [deps.models.route(request.model ?? getDefaultModel(deps))])
  const deadline = new Deadline(caller, timings.backendTotalMs, timings.backendTotalMs)
  const { signal } = deadline
  try {
    const list = await attempts.run(signal, async ({ backend, model }) => {
      const bytes = await backend.embed({ body: { ...request, model }, signal })
      return toWantedList(bytes, {
        count: countInputs(request.input),
        encoding: request.encoding_format ?? 'float',
        model,
      })
    })
    context.setHeader('X-Parley-Provider', attempts.route.backend.name)
    context.setHeader('X-Parley-Attempts', String(attempts.count))
    return new JsonBytes(list)
  } catch (thrown) {
    throw toCallerError(thrown)
  } finally {
    deadline.release()
  }
}

function getDefaultModel({ models }: Pick<Deps, 'models'>): string {
  const model = models.defaultEmbeddingModel()
  if (model !== undefined) return model
  throw models.list().length === 0
    ? new ServiceError('service_unavailable', 'No backend has said yet which models it has.')
    : new ServiceError('model_not_found', 'No backend lists an embedding model; name one.', {
        param: 'model',
      })
}
