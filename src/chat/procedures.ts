/** How callers chat: REST in one call that answers or streams, RPC as a stream of chunks. */
import { z } from 'zod'
import type { Config } from '../config.ts'
import type { EventStream } from '../rpc/answer.ts'
import { defineOp } from '../rpc/op.ts'
import { router } from '../rpc/trpc.ts'
import { chat } from './chat.ts'
import { decodeRuns } from './decode.ts'
import { ChatChunk, ChatCompletion, ChatRequest } from './schema.ts'

const everybody = { errors: 'openai', callers: ['parent', 'agent'] } as const

/** What REST needs to know of every operation that chats. */
export const chatWire = {
  ...everybody,
  maxBodyBytes: ({ limits }: Config) => limits.maxBodyBytes,
  failures: {
    403: 'The model is not allowed.',
    404: 'There is no such model.',
    502: 'The backend refused.',
    503: 'The backend cannot be reached.',
    504: 'The backend was too slow.',
  },
} as const

export const chatRouter = router({
  completions: defineOp({
    kind: 'mutation',
    http: {
      method: 'POST',
      path: '/v1/chat/completions',
      tag: 'Chat',
      summary: 'Answer a conversation, as one object or as a stream',
    },
    wire: { ...chatWire, sse: ChatChunk },
    rpc: false,
    input: ChatRequest,
    output: ChatCompletion,
    run: ({ context, input, signal }) => chat(context, input, signal),
  }),

  stream: defineOp({
    kind: 'mutation',
    wire: everybody,
    input: ChatRequest,
    output: z.custom<AsyncIterable<ChatChunk[]>>(),
    run: async ({ context, input, signal }) => {
      const answer = await chat(context, { ...input, stream: true }, signal)
      return decodeRuns((answer as EventStream).events)
    },
  }),
})
