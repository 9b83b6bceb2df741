/** Defines the operations that change who answers a conversation. */
import { operationsOf } from '../../operations/operation.ts'
import type { OperationsDependencies } from '../requests.ts'
import { ConversationReference } from '../schema.ts'
import { handBack, requestPerson, sendMessage, takeOver } from './requests.ts'
import {
  ConversationMode,
  HandoverBody,
  HandoverInput,
  MessageBody,
  MessageInput,
  StoredMessage,
  TakeoverBody,
  TakeoverInput,
} from './schema.ts'

const { mutation } = operationsOf<OperationsDependencies>()('Conversations', { callers: ['parent'] })

const failures = {
  404: 'The conversation does not exist.',
  409: 'The conversation has another mode (`wrong_mode`); the error contains `mode` and `assignee`.',
}

export const handoverOperations = {
  handover: mutation({
    http: { method: 'POST', path: '/v1/conversations/{conversation_id}/handover' },
    request: { bodySchema: HandoverBody },
    docs: {
      summary: 'Ask for a person',
      description:
        'The model stays silent until a person hands the conversation back or no person answers in time.',
      failures,
    },
    input: HandoverInput,
    output: ConversationMode,
    run: ({ context, input }) => requestPerson(context, input),
  }),

  takeover: mutation({
    http: { method: 'POST', path: '/v1/conversations/{conversation_id}/takeover' },
    request: { bodySchema: TakeoverBody },
    docs: {
      summary: 'Take a conversation over',
      description: 'Cancels a running answer of the model and keeps its text.',
      failures,
    },
    input: TakeoverInput,
    output: ConversationMode,
    run: ({ context, input }) => takeOver(context, input),
  }),

  handback: mutation({
    http: { method: 'POST', path: '/v1/conversations/{conversation_id}/handback' },
    docs: { summary: 'Let the model answer again', failures },
    input: ConversationReference,
    output: ConversationMode,
    run: ({ context, input }) => handBack(context, input),
  }),

  sendMessage: mutation({
    http: { method: 'POST', path: '/v1/conversations/{conversation_id}/messages' },
    request: { bodySchema: MessageBody },
    docs: {
      summary: "Send a person's message",
      description:
        "Takes the conversation over first if no person answers it. With a visitor's token, sends a message of the visitor, which needs the mode `waiting` or `person`.",
      failures: { ...failures, 422: '`client_id` was used for a different message.' },
    },
    input: MessageInput,
    output: StoredMessage,
    run: ({ context, input }) => sendMessage(context, input),
  }),
}
