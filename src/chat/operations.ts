/** The chat operations: REST answers in one call or streams, tRPC streams chunks. */
import { z } from 'zod'
import type { Config } from '../config/config.ts'
import { operationsOf } from '../operations/operation.ts'
import { ChatChunk, ChatCompletion, ChatRequest } from '../providers/chat-api.ts'
import { chat, streamChunks } from './chat.ts'
import type { Dependencies } from './dependencies.ts'
import { type StreamChunk, StreamRequest } from './schema.ts'

export const chatAuth = { callers: ['parent', 'agent'] } as const
export const chatRequest = { maxBodyBytes: ({ limits }: Config) => limits.maxBodyBytes }
export const chatFailures = {
  403: 'The model is not allowed.',
  404: 'There is no such model.',
  502: 'The backend refused.',
  503: 'The backend cannot be reached.',
  504: 'The backend was too slow.',
}

const { mutation } = operationsOf<Dependencies>()('Chat', chatAuth)

export const chatOperations = {
  completions: mutation({
    http: { method: 'POST', path: '/v1/chat/completions' },
    request: chatRequest,
    response: { events: ChatChunk },
    docs: {
      summary: 'Answer a conversation, as one object or as a stream',
      failures: chatFailures,
    },
    rpc: false,
    input: ChatRequest,
    output: ChatCompletion,
    run: ({ context, input, signal }) => chat(context, input, signal),
  }),

  stream: mutation({
    input: StreamRequest,
    output: z.custom<AsyncIterable<StreamChunk[]>>(),
    run: ({ context, input, signal }) => streamChunks(context, input, signal),
  }),
}
