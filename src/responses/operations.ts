/** Defines the operations of the Responses API, which exists only in the REST API. */

import type { Dependencies } from '../chat/dependencies.ts'
import { chatAuth, chatFailures, chatRequest } from '../chat/operations.ts'
import { ResponseEvent, ResponseObject } from '../conversations/response-schema.ts'
import { ItemList, TurnReference, TurnState } from '../conversations/schema.ts'
import { operationsOf } from '../operations/operation.ts'
import { cancelResponse, deleteResponse, getResponse, listInputItems } from './read-responses.ts'
import { respond } from './responses.ts'
import {
  InputItemsQuery,
  ResponseDeleted,
  ResponseQuery,
  ResponseReference,
  ResponsesRequest,
  TurnContinuation,
} from './schema.ts'
import { cancelTurn, continueTurn } from './turns.ts'

const notFound = { 404: 'The response does not exist.' }

const { query, mutation } = operationsOf<Dependencies>()('Chat', chatAuth)
const { mutation: turnMutation } = operationsOf<Dependencies>()('Conversations', chatAuth)

export const responsesOperations = {
  create: mutation({
    http: { method: 'POST', path: '/v1/responses' },
    request: chatRequest,
    response: { events: ResponseEvent },
    docs: {
      summary: 'Create a response',
      description:
        'Works like a chat completion in the format of the Responses API. If the agent stores conversations, the response can be continued, replayed and run in the background (docs/conversations.md).',
      failures: chatFailures,
    },
    rpc: false,
    input: ResponsesRequest,
    output: ResponseObject,
    run: ({ context, input, signal }) => respond(context, input, signal),
  }),

  get: query({
    http: { method: 'GET', path: '/v1/responses/{response_id}' },
    response: { events: ResponseEvent },
    docs: {
      summary: 'Get a stored response, or stream its events again',
      description:
        'Returns the output so far if the response is still running. A stream continues until the response ends.',
      failures: {
        ...notFound,
        400: 'The events after `starting_after` are no longer stored (`stream_expired`).',
      },
    },
    rpc: false,
    input: ResponseQuery,
    output: ResponseObject,
    run: ({ context, input, signal }) =>
      getResponse(
        context,
        { id: input.response_id, isStream: input.stream === true, startingAfter: input.starting_after },
        signal,
      ),
  }),

  cancel: mutation({
    http: { method: 'POST', path: '/v1/responses/{response_id}/cancel' },
    docs: {
      summary: 'Cancel a running response',
      description:
        'Stops the response on any server, and returns it with the output so far. If it was already cancelled, returns it unchanged.',
      failures: { ...notFound, 400: 'The response ended before it was cancelled (`not_cancellable`).' },
    },
    rpc: false,
    input: ResponseReference,
    output: ResponseObject,
    run: ({ context, input, signal }) => cancelResponse(context, input.response_id, signal),
  }),

  delete: mutation({
    http: { method: 'DELETE', path: '/v1/responses/{response_id}' },
    docs: {
      summary: 'Delete a stored response',
      description: 'Cancels the response if it is running, and deletes its items and events.',
      failures: notFound,
    },
    rpc: false,
    input: ResponseReference,
    output: ResponseDeleted,
    run: ({ context, input }) => deleteResponse(context, input.response_id),
  }),

  inputItems: query({
    http: { method: 'GET', path: '/v1/responses/{response_id}/input_items' },
    docs: { summary: 'List the input items of a stored response', failures: notFound },
    rpc: false,
    input: InputItemsQuery,
    output: ItemList,
    run: ({ context, input: { response_id: id, limit, order, after } }) =>
      listInputItems(context, { id, limit, order, after }),
  }),

  cancelTurn: turnMutation({
    http: { method: 'POST', path: '/v1/turns/{turn_id}/cancel' },
    docs: {
      summary: 'Cancel a running turn',
      description:
        'Stops the turn on any server, regardless of the API that started it. If the turn was already cancelled, returns it unchanged.',
      failures: {
        404: 'The turn does not exist.',
        400: 'The turn ended before it was cancelled (`not_cancellable`).',
      },
    },
    rpc: false,
    input: TurnReference,
    output: TurnState,
    run: ({ context, input, signal }) => cancelTurn(context, input.turn_id, signal),
  }),

  continueTurn: turnMutation({
    http: { method: 'POST', path: '/v1/turns/{turn_id}/continue' },
    request: {
      ...chatRequest,
      bodySchema: TurnContinuation.omit({ turn_id: true }).meta({ id: 'TurnContinuation' }),
    },
    response: { events: ResponseEvent },
    docs: {
      summary: 'Continue an interrupted turn',
      description:
        'Asks the model to continue the answer of an incomplete or cancelled turn exactly where it stopped, and returns a response. Settings in the body replace those of the turn.',
      failures: {
        ...chatFailures,
        400: 'The turn is neither incomplete nor cancelled, or the agent stores no conversations (`conversations_off`).',
        404: 'The turn does not exist.',
        409: 'The turn or another turn of its conversation is running (`conversation_locked`).',
      },
    },
    rpc: false,
    input: TurnContinuation,
    output: ResponseObject,
    run: ({ context, input, signal }) => continueTurn(context, input, signal),
  }),
}
