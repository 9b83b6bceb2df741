/** Calls the server's operations for visitors. */
import type {
  CreateUploadResult,
  FeedEvent,
  OpenResult,
  RegenerateInput,
  SendInput,
  SendResult,
  SessionResult,
  StartedResult,
  ToolResultsInput,
  VisitorConversation,
  VisitorTurn,
} from '../../../src/visitors/schema.ts'
import { pacedFetch } from '../chat/paced-fetch.ts'
import { createRpcClient } from '../chat/rpc.ts'
import type { Rating } from '../conversation.ts'
import { createVisitorSession, responseOf, type VisitorSessionParts } from './visitor-session.ts'

/** The page's additions to a turn. */
export type TurnFields = Pick<SendInput, 'context' | 'tools' | 'model'>

/** All methods reject with `ChatFailure`. */
export interface VisitorClient {
  /** Obtains a token, or renews the one that the record contains. */
  readonly startSession: () => Promise<SessionResult>
  readonly listConversations: (
    after: string | undefined,
  ) => Promise<{ readonly data: readonly VisitorConversation[]; readonly has_more: boolean }>
  readonly open: (conversation: string) => Promise<OpenResult>
  readonly send: (input: SendInput) => Promise<SendResult>
  readonly regenerate: (input: RegenerateInput) => Promise<SendResult>
  /** Removes the message that a turn answers, and its answer. */
  readonly removeMessage: (turn: string) => Promise<void>
  readonly readAttachment: (at: {
    readonly conversation: string
    readonly item: string
    readonly part: number
  }) => Promise<string>
  readonly createUpload: (file: {
    readonly filename: string
    readonly bytes: number
  }) => Promise<CreateUploadResult>
  readonly cancel: (turn: string) => Promise<VisitorTurn>
  readonly continueTurn: (turn: string, fields: TurnFields) => Promise<StartedResult>
  readonly sendToolResults: (input: ToolResultsInput) => Promise<StartedResult>
  readonly remove: (conversation: string) => Promise<void>
  /** Undefined deletes the rating. */
  readonly rate: (turn: string, rating: Rating | undefined) => Promise<void>
  readonly requestPerson: (conversation: string) => Promise<void>
  /** Opens one connection to the feed; calls `onByte` whenever bytes arrive. */
  readonly follow: (
    conversation: string,
    cursor: string,
    signal: AbortSignal,
    onByte: () => void,
  ) => Promise<AsyncIterable<FeedEvent>>
}

export function createVisitorClient(apiKey: string, parts: VisitorSessionParts): VisitorClient {
  const { headers, start, call: asVisitor } = createVisitorSession(apiKey, parts)
  return {
    startSession: start,
    listConversations: (after) =>
      asVisitor(({ visitor }) => visitor.conversations.query({ ...(after !== undefined && { after }) })),
    open: (conversation) => asVisitor(({ visitor }) => visitor.open.query({ conversation })),
    send: (input) => asVisitor(({ visitor }) => visitor.send.mutate(input)),
    regenerate: (input) => asVisitor(({ visitor }) => visitor.regenerate.mutate(input)),
    removeMessage: async (turn) => void (await asVisitor(({ visitor }) => visitor.remove.mutate({ turn }))),
    readAttachment: async (at) => (await asVisitor(({ visitor }) => visitor.attachment.query(at))).data,
    createUpload: (file) => asVisitor(({ visitor }) => visitor.createUpload.mutate(file)),
    cancel: async (turn) => (await asVisitor(({ visitor }) => visitor.cancel.mutate({ turn }))).turn,
    continueTurn: (turn, fields) => asVisitor(({ visitor }) => visitor.continue.mutate({ turn, ...fields })),
    sendToolResults: (input) => asVisitor(({ visitor }) => visitor.toolResults.mutate(input)),
    async remove(conversation) {
      await asVisitor(({ visitor }) => visitor.delete.mutate({ conversation }))
    },
    async rate(turn, rating) {
      try {
        await asVisitor(({ visitor }) => visitor.rate.mutate({ turn, ...(rating ?? { value: null }) }))
      } catch (thrown) {
        // Another tab has already deleted the rating.
        if (rating !== undefined || !isGone(thrown)) throw thrown
      }
    },
    async requestPerson(conversation) {
      await asVisitor(({ visitor }) => visitor.requestPerson.mutate({ conversation }))
    },
    follow: (conversation, cursor, signal, onByte) =>
      asVisitor(
        ({ visitor }) => visitor.follow.query({ conversation, cursor }, { signal }),
        createRpcClient(apiKey, headers, (input, init) => pacedFetch(input, init, onByte)),
      ),
  }
}

/** Returns whether the server has responded that the conversation does not exist. */
export function isGone(thrown: unknown): boolean {
  return responseOf(thrown)?.status === 404
}

/** Returns whether the server refused a request that is not possible in the conversation's mode. */
export function isWrongMode(thrown: unknown): boolean {
  return responseOf(thrown)?.code === 'wrong_mode'
}

/** Returns whether the server cannot continue after the client's cursor. */
export function isCursorRejected(thrown: unknown): boolean {
  const { status } = responseOf(thrown) ?? {}
  return status === 400 || status === 409
}
