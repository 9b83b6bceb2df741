/** Defines the Responses operation, a REST-only call that returns an object or a stream. */
import type { Dependencies } from '../chat/dependencies.ts'
import { chatAuth, chatFailures, chatRequest } from '../chat/operations.ts'
import { operationsOf } from '../operations/operation.ts'
import { ResponseEvent, ResponseObject } from './answer-schema.ts'
import { respond } from './responses.ts'
import { ResponsesRequest } from './schema.ts'

const { mutation } = operationsOf<Dependencies>()('Chat', chatAuth)

export const responsesOperations = {
  create: mutation({
    http: { method: 'POST', path: '/v1/responses' },
    request: chatRequest,
    response: { events: ResponseEvent },
    docs: {
      summary: 'Create a response',
      description:
        'Creates a chat completion in the format of the Responses API. The server does not store responses, so every request must contain the whole conversation.',
      failures: chatFailures,
    },
    rpc: false,
    input: ResponsesRequest,
    output: ResponseObject,
    run: ({ context, input, signal }) => respond(context, input, signal),
  }),
}
