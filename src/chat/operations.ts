/** Defines the chat operations: REST returns an object or a stream, tRPC streams chunks. */
import { z } from 'zod'
import type { Config } from '../config/config.ts'
import { operationsOf } from '../operations/operation.ts'
import { ChatChunk, ChatCompletion, ChatRequest } from '../providers/chat-api.ts'
import { chat, streamChunks } from './chat.ts'
import type { Dependencies } from './dependencies.ts'
import { isPlainRequest } from './plain-request.ts'
import { type StreamChunk, StreamRequest } from './schema.ts'
import { resumeChat } from './stored-chat.ts'

export const chatAuth = { callers: ['parent', 'agent'] } as const
export const chatRequest = { maxBodyBytes: ({ limits }: Config) => limits.maxBodyBytes }
export const chatFailures = {
  403: 'The key may not use this model.',
  404: 'The model does not exist.',
  502: 'The model provider rejected the request or returned an invalid response.',
  503: 'The model provider is unreachable.',
  504: 'The model provider did not respond in time.',
}

const { mutation } = operationsOf<Dependencies>()('Chat', chatAuth)

export const chatOperations = {
  completions: mutation({
    http: { method: 'POST', path: '/v1/chat/completions' },
    request: { ...chatRequest, isPlainInput: isPlainRequest, resume: resumeChat },
    response: { events: ChatChunk },
    docs: {
      summary: 'Create a chat completion',
      description:
        'If the agent stores conversations, the events of the stream have ids. To resume the stream, send the last id in the `Last-Event-ID` header. An `Idempotency-Key` makes retries safe (docs/conversations.md).',
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
