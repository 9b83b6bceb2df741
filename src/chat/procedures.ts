/** How callers chat: REST in one call that answers or streams, RPC as a stream of chunks. */
import { z } from 'zod'
import type { EventStream } from '../rpc/answer.ts'
import { defineOp } from '../rpc/op.ts'
import { router } from '../rpc/trpc.ts'
import { chat } from './chat.ts'
import { dataOf, splitRun } from './event-reader.ts'
import { ChatChunk, ChatCompletion, ChatRequest } from './schema.ts'

const everybody = { errors: 'openai', callers: ['parent', 'agent'] } as const

export const chatRouter = router({
  completions: defineOp({
    kind: 'mutation',
    http: {
      method: 'POST',
      path: '/v1/chat/completions',
      tag: 'Chat',
      summary: 'Answer a conversation, as one object or as a stream',
    },
    wire: {
      ...everybody,
      maxBodyBytes: ({ limits }) => limits.maxBodyBytes,
      sse: ChatChunk,
      failures: {
        403: 'The model is not allowed.',
        404: 'There is no such model.',
        502: 'The backend refused.',
        503: 'The backend cannot be reached.',
        504: 'The backend was too slow.',
      },
    },
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

/** The chunks each read of the backend brought, as objects. */
async function* decodeRuns(runs: AsyncIterator<Uint8Array, void, void>): AsyncGenerator<ChatChunk[]> {
  try {
    for (let run = await runs.next(); !run.done; run = await runs.next()) {
      yield [...splitRun(Buffer.from(run.value))].map((event) => JSON.parse(dataOf(event) as string))
    }
  } finally {
    await runs.return?.()
  }
}
