/** Chooses the frame's server, the transport, and the scope of the stored history. */
import type { AgentTheme } from '../../appearance.ts'
import type { FrameOptions } from '../../options.ts'
import { publicPartOf } from '../../values.ts'
import type { Failure } from '../failure.ts'
import type { VisitorIdentity } from '../server-conversation/visitor-identity.ts'
import { readAgentTheme } from '../theme.ts'
import { createRestTransport } from './rest.ts'
import { createRpcTransport } from './rpc-transport.ts'
import type { Transport } from './transport.ts'

/** Settings that the server passes to the frame, and the frame's address. */
export interface Operator {
  /** The frame's origin. */
  readonly origin: string
  /**
   * The public part of the key in the frame's address; its agent determines which pages may show the frame.
   */
  readonly publicKey: string
  readonly connectOrigins: readonly string[]
  readonly isProviderKeyAllowed: boolean
  /** The theme of the agent whose key is in the frame's address. */
  readonly theme: AgentTheme
}

export interface Server {
  readonly transport: Transport
  /** Name of the stored conversation, without secrets; undefined if the conversation is not stored. */
  readonly historyScope: string | undefined
}

const CHAT_PATH = '/v1/chat/completions'

/**
 * Returns the server for these options, or the reason why none is suitable. `pageOrigin` is the embedding
 * page's origin.
 */
export function chooseServer(
  options: FrameOptions,
  operator: Operator,
  pageOrigin: string,
  identity: VisitorIdentity,
): Server | Failure {
  const { apiKey, endpoint, headers = {}, providerApiKey } = options
  if (apiKey !== undefined && /^\s*svc_(?!scoped_)/.test(apiKey)) return parentKeyFailure
  if (providerApiKey !== undefined && !operator.isProviderKeyAllowed)
    return { code: 'provider_key_not_allowed' }
  const address = endpoint === undefined ? undefined : parseAddress(endpoint, operator.origin)
  if (endpoint !== undefined && !isAllowed(address, operator)) return { code: 'endpoint_not_allowed' }
  const publicKey = publicPartOf(apiKey)
  // The server allows the page to show the frame only for the agent in the frame's address.
  if (publicKey !== '' && publicKey !== operator.publicKey) return otherAgentFailure
  if (address === undefined || address.origin === operator.origin) {
    if (apiKey === undefined || apiKey === '') return { code: 'missing_api_key' }
    if (publicKey === '') return { code: 'invalid_api_key' }
    const own = { historyScope: publicKey }
    if (address === undefined || (address.pathname === CHAT_PATH && Object.keys(headers).length === 0))
      return { ...own, transport: createRpcTransport(apiKey, identity) }
    return {
      ...own,
      transport: createRestTransport({ endpoint: address.href, key: apiKey, headers, takesSystem: false }),
    }
  }
  const key = providerApiKey ?? apiKey
  return {
    transport: createRestTransport({ endpoint: address.href, key, headers, takesSystem: publicKey === '' }),
    // Without an agent key, conversations are separated by the page's origin.
    historyScope: `${address.origin}${address.pathname} ${publicKey === '' ? pageOrigin : publicKey}`,
  }
}

const parentKeyFailure: Failure = {
  code: 'invalid_api_key',
  detail:
    'apiKey is a parent key (svc_…). A parent key is a secret, but everyone who opens this page can read it. ' +
    'Revoke it, and set apiKey to the agent key (agnt_key-…). The widget did not use the key.',
}

const otherAgentFailure: Failure = {
  code: 'invalid_api_key',
  detail: "apiKey belongs to a different agent than the key in the frame's address.",
}

/** Reads the operator's settings from the document's root, and the key from the frame's address. */
export function readOperator(root: HTMLElement, address: Pick<Location, 'origin' | 'search'>): Operator {
  const { connectOrigins = '', allowProviderKey } = root.dataset
  return {
    origin: address.origin,
    publicKey: new URLSearchParams(address.search).get('key') ?? '',
    connectOrigins: connectOrigins.split(/\s+/).filter((origin) => origin !== ''),
    isProviderKeyAllowed: allowProviderKey === 'true',
    theme: readAgentTheme(root),
  }
}

function parseAddress(endpoint: string, base: string): URL | undefined {
  return URL.canParse(endpoint, base) ? new URL(endpoint, base) : undefined
}

function isAllowed(address: URL | undefined, { origin, connectOrigins }: Operator): boolean {
  if (address === undefined || !/^https?:$/.test(address.protocol)) return false
  return address.origin === origin || connectOrigins.includes(address.origin)
}
