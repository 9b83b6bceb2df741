/** Connects to the server that the options select, and reads its agent. */
import type { FrameOptions } from '../options.ts'
import type { Store } from './app-state.ts'
import { chooseServer, type Operator, type Server } from './chat/choose-server.ts'
import type { AgentSelf, Transport } from './chat/transport.ts'
import { ChatFailure, type Failure, isLasting, toChatFailure } from './failure.ts'
import type { VisitorIdentity } from './server-conversation/visitor-identity.ts'
import type { Language } from './strings/strings.ts'

const AGENT_TIMEOUT_MS = 15_000

interface ConnectionParts {
  readonly store: Store
  readonly operator: Operator
  readonly identity: VisitorIdentity
  /** Replaces the server while the console tries a definition. */
  readonly trial?: Transport | undefined
  /** Called when the options select another server, or none. */
  readonly onTransport: (transport: Transport | undefined) => void
  /** Called once for each server; the agent is undefined if the server has none. */
  readonly onAgent: (agent: AgentSelf | undefined) => void
  readonly onFailure: (failure: Failure) => void
}

export interface Connection {
  /** Connects to another server only if the options that select it have changed. */
  readonly configure: (options: FrameOptions, language: Language, pageOrigin: string) => void
  /**
   * Reads the agent if it is not known yet. Resolves to the failure, if any. Called again when the network
   * returns, when the window opens and before a message is sent.
   */
  readonly readAgent: () => Promise<Failure | undefined>
  readonly historyScope: () => string | undefined
}

export function createConnection(parts: ConnectionParts): Connection {
  const { store, operator, identity, trial, onTransport, onAgent, onFailure } = parts
  const { dispatch } = store
  let server: Server | undefined
  let pending: { readonly server: Server; readonly done: Promise<Failure | undefined> } | undefined

  function readAgent(): Promise<Failure | undefined> {
    const { home, blocked } = store.get()
    if (server === undefined || home !== 'unknown' || blocked !== undefined) return Promise.resolve(blocked)
    if (pending?.server !== server) pending = { server, done: readFrom(server) }
    return pending.done
  }

  async function readFrom(asked: Server): Promise<Failure | undefined> {
    try {
      const read = await asked.transport.readAgent(AbortSignal.timeout(AGENT_TIMEOUT_MS))
      if (server !== asked) return undefined
      const { options } = store.get()
      const isOther = options?.agentId !== undefined && read !== undefined && read.id !== options.agentId
      if (isOther) throw new ChatFailure({ code: 'agent_mismatch' })
      dispatch({ type: 'agent', agent: read })
      onAgent(read)
      return undefined
    } catch (thrown) {
      const { failure } = toChatFailure(thrown)
      if (server === asked && isLasting(failure)) onFailure(failure)
      return failure
    } finally {
      if (pending?.server === asked) pending = undefined
    }
  }

  return {
    readAgent,
    historyScope: () => server?.historyScope,
    configure(options, language, pageOrigin) {
      identity.configure(options)
      const { options: before, blocked } = store.get()
      if (before !== undefined && isSameServer(before, options)) {
        dispatch({ type: 'configured', options, language, blocked })
        return
      }
      const chosen =
        trial === undefined
          ? chooseServer(options, operator, pageOrigin, identity)
          : { transport: trial, historyScope: undefined }
      const failure = 'code' in chosen ? chosen : undefined
      server = 'code' in chosen ? undefined : chosen
      dispatch({ type: 'configured', options, language, blocked: failure })
      onTransport(server?.transport)
      dispatch({ type: 'agent', agent: undefined })
      dispatch({ type: 'home', home: 'unknown' })
      if (failure !== undefined) onFailure(failure)
      else void readAgent()
    },
  }
}

function isSameServer(one: FrameOptions, other: FrameOptions): boolean {
  const identity = ({ apiKey, agentId, endpoint, providerApiKey, headers }: FrameOptions) =>
    JSON.stringify([apiKey, agentId, endpoint, providerApiKey, headers])
  return identity(one) === identity(other)
}
