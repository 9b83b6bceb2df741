/** The Responses operation: REST only, in one call that answers or streams. */
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
      summary: 'Answer an input of the Responses API, as one object or as a stream',
      description:
        'The same turn as a chat, in the shapes of the Responses API. Nothing is kept: every request holds its whole conversation.',
      failures: chatFailures,
    },
    rpc: false,
    input: ResponsesRequest,
    output: ResponseObject,
    run: ({ context, input, signal }) => respond(context, input, signal),
  }),
}
