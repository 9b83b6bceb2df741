/** Sends local chats to the server that delivered the frame, with the identity of the page's user. */
import type { ChatChunk, ChatRequest } from '../../../src/providers/chat-api.ts'
import type { VisitorIdentity } from '../server-conversation/visitor-identity.ts'
import type { VisitorRecord } from '../server-conversation/visitor-record.ts'
import {
  createVisitorSession,
  toVisitorFailure,
  type VisitorSession,
} from '../server-conversation/visitor-session.ts'
import { createRpcClient, type RpcClient } from './rpc.ts'
import type { AgentSelf, ChatBody, Transport } from './transport.ts'

/** Creates a transport to the server that delivered the frame. */
export function createRpcTransport(apiKey: string, identity: VisitorIdentity): Transport {
  const anonymous = createRpcClient(apiKey)
  let user: string | undefined
  let session: VisitorSession | undefined

  /** Runs a call as the page's user. Anonymous visitors get no token, because nothing of them is stored. */
  function call<T>(run: (client: RpcClient) => Promise<T>): Promise<T> {
    if (!identity.isUsed()) {
      session = undefined
      return run(anonymous)
    }
    if (session === undefined || user !== identity.user()) session = createMemorySession(apiKey, identity)
    user = identity.user()
    return session.call(run)
  }

  return {
    takesSystem: false,
    async *stream(body: ChatBody, signal: AbortSignal): AsyncGenerator<readonly ChatChunk[]> {
      let hasBegun = false
      try {
        const runs = await call(({ chat }) => chat.stream.mutate(body as ChatRequest, { signal }))
        for await (const run of runs) {
          hasBegun = true
          yield run
        }
      } catch (thrown) {
        throw toVisitorFailure(thrown, hasBegun)
      }
    },
    async readAgent(signal): Promise<AgentSelf> {
      try {
        return await anonymous.agents.me.query(undefined, { signal })
      } catch (thrown) {
        throw toVisitorFailure(thrown)
      }
    },
    forgetVisitor() {
      session = undefined
    },
  }
}

/** Keeps the token only in memory, because the agent stores nothing. */
function createMemorySession(apiKey: string, identity: VisitorIdentity): VisitorSession {
  let current: VisitorRecord = {}
  const record = {
    read: () => current,
    change({ token, user }: Partial<Record<keyof VisitorRecord, unknown>>) {
      current = { ...(typeof token === 'string' && { token }), ...(typeof user === 'string' && { user }) }
    },
  }
  const onOtherUser = () => {
    current = {}
  }
  // Each session has its own record, so a late response changes nothing.
  return createVisitorSession(apiKey, { record, identity, onOtherUser, isCurrent: () => true })
}
