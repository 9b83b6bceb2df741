/** Calls the server's operations for visitors, and obtains and renews the visitor's token. */
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
import { createRpcClient, type RpcClient, toErrorResponse } from '../chat/rpc.ts'
import { type ErrorResponse, toFailure } from '../chat/to-failure.ts'
import type { Rating } from '../conversation.ts'
import { ChatFailure } from '../failure.ts'
import { userOf, type VisitorIdentity } from './visitor-identity.ts'
import type { VisitorRecordStore } from './visitor-record.ts'

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

interface VisitorClientParts {
  readonly record: VisitorRecordStore
  readonly identity: VisitorIdentity
  /** Called before the page's user changes; must remove the data of the user before. */
  readonly onOtherUser: () => void
}

export function createVisitorClient(
  apiKey: string,
  { record, identity, onOtherUser }: VisitorClientParts,
): VisitorClient {
  const headers = (): Readonly<Record<string, string>> => {
    const { token } = record.read()
    return token === undefined ? {} : { 'X-Parley-Visitor': token }
  }
  const client = createRpcClient(apiKey, headers)
  let starting: Promise<SessionResult> | undefined
  let renewAtMs = 0

  /** Concurrent calls share one request, so that one tab never becomes two visitors. */
  function startSession(): Promise<SessionResult> {
    starting ??= rejectAsFailure(exchange)
      .catch((thrown) => {
        // The identity was issued too long ago, so that the page must provide another one.
        if (!isExpired(thrown) || !identity.isUsed()) throw thrown
        return rejectAsFailure(exchange)
      })
      .finally(() => {
        starting = undefined
      })
    return starting
  }

  /** Sends the page's identity if there is no valid token of the page's user. */
  async function exchange(): Promise<SessionResult> {
    const isValid = record.read().user !== undefined && Date.now() < renewAtMs && !identity.hasNew()
    const identityToken = isValid ? undefined : await identity.take()
    const user = isValid ? record.read().user : userOf(identityToken)
    if (record.read().user !== undefined && record.read().user !== user) onOtherUser()
    const session = await client.visitor.session.mutate(
      identityToken === undefined ? {} : { identity_token: identityToken },
    )
    record.change({ token: session.token, user })
    // Renews the token of an anonymous visitor after half of its lifetime. With an expired one, the server would create
    // another visitor.
    renewAtMs = user === undefined ? (Date.now() + session.expires_at * 1000) / 2 : session.expires_at * 1000
    return session
  }

  /** Runs a call with a token; renews the token once if the server does not accept it. */
  async function asVisitor<T>(call: (client: RpcClient) => Promise<T>, used = client): Promise<T> {
    const isRenewed = record.read().token !== undefined && Date.now() < renewAtMs && !identity.hasNew()
    if (!isRenewed) await startSession()
    try {
      return await call(used)
    } catch (thrown) {
      if (!isTokenRejected(thrown) && !isExpired(thrown)) throw toVisitorFailure(thrown)
    }
    renewAtMs = 0
    await startSession()
    return rejectAsFailure(() => call(used))
  }

  return {
    startSession,
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

async function rejectAsFailure<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (thrown) {
    throw toVisitorFailure(thrown)
  }
}

function toVisitorFailure(thrown: unknown): ChatFailure {
  if (thrown instanceof ChatFailure) return thrown
  // A visitor cannot fix a rejected token, and the page's key is valid.
  if (isTokenRejected(thrown)) return new ChatFailure({ code: 'identity_invalid' }, thrown)
  return new ChatFailure(toFailure(toErrorResponse(thrown), false), thrown)
}

export function isTokenRejected(thrown: unknown): boolean {
  return responseOf(thrown)?.code === 'visitor_required'
}

function isExpired(thrown: unknown): boolean {
  return responseOf(thrown)?.code === 'identity_expired'
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

function responseOf(thrown: unknown): ErrorResponse | undefined {
  return toErrorResponse(thrown instanceof ChatFailure ? thrown.cause : thrown)
}
