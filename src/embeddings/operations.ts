/** Defines the embeddings operation. */

import type { Dependencies } from '../chat/dependencies.ts'
import { operationsOf } from '../operations/operation.ts'
import { createEmbeddings } from './embeddings.ts'
import { EmbeddingList, EmbeddingsRequest, MAX_EMBEDDINGS_VALUES } from './schema.ts'

const { mutation } = operationsOf<Dependencies>()('Embeddings', { callers: ['parent'] })

export const embeddingsOperations = {
  create: mutation({
    http: { method: 'POST', path: '/v1/embeddings' },
    request: { maxBodyBytes: ({ limits }) => limits.maxBodyBytes, maxJsonValues: MAX_EMBEDDINGS_VALUES },
    docs: {
      summary: 'Create embeddings',
      failures: {
        404: 'The model does not exist.',
        502: 'The model provider rejected the request or returned an invalid response.',
        503: 'The model provider is unavailable.',
        504: 'The model provider did not respond in time.',
      },
    },
    input: EmbeddingsRequest,
    output: EmbeddingList,
    run: ({ context, input, signal }) => createEmbeddings(context, input, signal),
  }),
}
