/** How callers turn texts into vectors, over RPC and REST alike. */
import { operationsOf } from '../operations/operation.ts'
import type { Dependencies } from './dependencies.ts'
import { createEmbeddings } from './embeddings.ts'
import { EmbeddingList, EmbeddingsRequest, MAX_EMBEDDINGS_VALUES } from './schema.ts'

const define = operationsOf<Dependencies>()

export const embeddingsOperations = {
  create: define({
    kind: 'mutation',
    http: {
      method: 'POST',
      path: '/v1/embeddings',
      tag: 'Embeddings',
      summary: 'Turn texts into vectors',
    },
    wire: {
      errors: 'openai',
      callers: ['parent'],
      maxBodyBytes: ({ limits }) => limits.maxBodyBytes,
      maxJsonValues: MAX_EMBEDDINGS_VALUES,
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
