/** The embeddings operation. */

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
      summary: 'Turn texts into vectors',
      failures: {
        404: 'There is no such model.',
        502: 'The backend refused.',
        503: 'The backend cannot be reached.',
        504: 'The backend was too slow.',
      },
    },
    input: EmbeddingsRequest,
    output: EmbeddingList,
    run: ({ context, input, signal }) => createEmbeddings(context, input, signal),
  }),
}
