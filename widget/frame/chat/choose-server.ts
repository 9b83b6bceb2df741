/** Chooses the server that the frame talks to, the transport, and the scope of the stored history. */
import type { FrameOptions } from '../../options.ts'
import type { Failure } from '../failure.ts'
import { createRestTransport } from './rest.ts'
import { createRpcTransport } from './rpc.ts'
import type { Transport } from './transport.ts'

/** Settings of the server's operator, which the frame's document contains. */
export interface Operator {
  /** The frame's own origin. */
  readonly origin: string
  readonly connectOrigins: readonly string[]
  readonly isProviderKeyAllowed: boolean
}

export interface Server {
  readonly transport: Transport
  /** Storage scope of the conversation, which contains no secret; undefined if nothing identifies the agent. */
  readonly historyScope: string | undefined
}

/** Captures `agnt_key-` and the public part of an agent key. */
const agentKey = /^(agnt_key-[0-9A-Za-z]{12})[0-9A-Za-z]/
const CHAT_PATH = '/v1/chat/completions'

/** Returns the server for these options, or the reason why none can be used. */
export function chooseServer(options: FrameOptions, operator: Operator): Server | Failure {
  const { apiKey, endpoint, headers, providerApiKey } = options
  if (providerApiKey !== undefined && !operator.isProviderKeyAllowed)
    return { code: 'provider_key_not_allowed' }
  const address = endpoint === undefined ? undefined : parseAddress(endpoint, operator.origin)
  if (endpoint !== undefined && !isAllowed(address, operator)) return { code: 'endpoint_not_allowed' }
  const isOwn = address?.origin === operator.origin && address.pathname === CHAT_PATH
  if (address === undefined || (isOwn && headers === undefined && providerApiKey === undefined)) {
    if (apiKey === undefined || apiKey === '') return { code: 'missing_api_key' }
    return { transport: createRpcTransport(apiKey), historyScope: agentKey.exec(apiKey)?.[1] }
  }
  const transport = createRestTransport({
    endpoint: address.href,
    key: providerApiKey ?? apiKey,
    headers: headers ?? {},
  })
  const scope = apiKey === undefined ? undefined : agentKey.exec(apiKey)?.[1]
  return { transport, historyScope: `${address.origin}${address.pathname} ${scope ?? ''}`.trim() }
}

/** Reads the operator's settings from the root element of the document. */
export function readOperator(root: HTMLElement): Operator {
  const { connectOrigins = '', allowProviderKey } = root.dataset
  return {
    origin: location.origin,
    connectOrigins: connectOrigins.split(/\s+/).filter((origin) => origin !== ''),
    isProviderKeyAllowed: allowProviderKey === 'true',
  }
}

function parseAddress(endpoint: string, base: string): URL | undefined {
  return URL.canParse(endpoint, base) ? new URL(endpoint, base) : undefined
}

function isAllowed(address: URL | undefined, { origin, connectOrigins }: Operator): boolean {
  if (address === undefined || !/^https?:$/.test(address.protocol)) return false
  return address.origin === origin || connectOrigins.includes(address.origin)
}
