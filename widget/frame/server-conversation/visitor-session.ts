/** Obtains and renews the visitor's token, and runs calls with it. */
import type { SessionResult } from '../../../src/visitors/schema.ts'
import { createRpcClient, type RpcClient, toErrorResponse } from '../chat/rpc.ts'
import { type ErrorResponse, toFailure } from '../chat/to-failure.ts'
import { ChatFailure } from '../failure.ts'
import { userOf, type VisitorIdentity } from './visitor-identity.ts'
import type { VisitorRecordStore } from './visitor-record.ts'

export interface VisitorSessionParts {
  readonly record: Pick<VisitorRecordStore, 'read' | 'change'>
  readonly identity: VisitorIdentity
  /** Called before the page's user changes; must remove the data of the user before. */
  readonly onOtherUser: () => void
  /** Returns whether the page still has the user for whom the session was created. */
  readonly isCurrent: () => boolean
}

export interface VisitorSession {
  /** Returns the header with the visitor's current token, if there is one. */
  readonly headers: () => Readonly<Record<string, string>>
  /** Obtains a token, or renews the one that the record contains. @throws ChatFailure */
  readonly start: () => Promise<SessionResult>
  /**
   * Runs a call with a token; renews the token once if the server does not accept it. `used` is the client for the
   * call. @throws ChatFailure
   */
  readonly call: <T>(run: (client: RpcClient) => Promise<T>, used?: RpcClient) => Promise<T>
}

export function createVisitorSession(
  apiKey: string,
  { record, identity, onOtherUser, isCurrent }: VisitorSessionParts,
): VisitorSession {
  const headers = (): Readonly<Record<string, string>> => {
    const { token } = record.read()
    return token === undefined ? {} : { 'X-Parley-Visitor': token }
  }
  const client = createRpcClient(apiKey, headers)
  let starting: Promise<SessionResult> | undefined
  let renewAtMs = 0

  /** Concurrent calls share one request, so that one tab never becomes two visitors. */
  function start(): Promise<SessionResult> {
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
    assertCurrent()
    const user = isValid ? record.read().user : userOf(identityToken)
    if (record.read().user !== undefined && record.read().user !== user) onOtherUser()
    const session = await client.visitor.session.mutate(
      identityToken === undefined ? {} : { identity_token: identityToken },
    )
    assertCurrent()
    record.change({ token: session.token, user })
    // Renews the token of an anonymous visitor after half of its lifetime. With an expired one, the server would create
    // another visitor.
    renewAtMs = user === undefined ? (Date.now() + session.expires_at * 1000) / 2 : session.expires_at * 1000
    return session
  }

  /** Prevents a late response from replacing the next user's token. */
  function assertCurrent(): void {
    if (!isCurrent()) throw new ChatFailure({ code: 'interrupted' })
  }

  async function call<T>(run: (client: RpcClient) => Promise<T>, used = client): Promise<T> {
    const isRenewed = record.read().token !== undefined && Date.now() < renewAtMs && !identity.hasNew()
    if (!isRenewed) await start()
    try {
      return await run(used)
    } catch (thrown) {
      if (!isTokenRejected(thrown) && !isExpired(thrown)) throw toVisitorFailure(thrown)
    }
    renewAtMs = 0
    await start()
    return rejectAsFailure(() => run(used))
  }

  return { headers, start, call }
}

async function rejectAsFailure<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (thrown) {
    throw toVisitorFailure(thrown)
  }
}

/** `hasBegun` means that part of the reply has arrived. */
export function toVisitorFailure(thrown: unknown, hasBegun = false): ChatFailure {
  if (thrown instanceof ChatFailure) return thrown
  // A visitor cannot fix a rejected token, and the page's key is valid.
  if (isTokenRejected(thrown)) return new ChatFailure({ code: 'identity_invalid' }, thrown)
  return new ChatFailure(toFailure(toErrorResponse(thrown), hasBegun), thrown)
}

export function isTokenRejected(thrown: unknown): boolean {
  return responseOf(thrown)?.code === 'visitor_required'
}

function isExpired(thrown: unknown): boolean {
  return responseOf(thrown)?.code === 'identity_expired'
}

/** Returns the server's error; undefined if the server did not respond. */
export function responseOf(thrown: unknown): ErrorResponse | undefined {
  return toErrorResponse(thrown instanceof ChatFailure ? thrown.cause : thrown)
}
