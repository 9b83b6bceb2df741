/** Opens sockets to hosts an operator has named, but never where only credentials live. */
import type { LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { forbiddenAddress, guardLookup, isForbiddenAddress } from './guarded-lookup.ts'

/**
 * Connects to the host the operator configured. That choice is the allow-list: runners and MCP servers live on loopback and in
 * private networks (vLLM, LiteLLM next door), so those stay open. Link-local and cloud metadata addresses hold only
 * credentials, so they are refused however they are reached: as a literal or as the answer of a name server that changed its
 * mind. Every resolved address is checked at the moment of connecting. Security: 2.10
 */
export function createGuardedConnector(connectMs: number, lookup?: LookupFunction): buildConnector.connector {
  const connect = buildConnector({ timeout: connectMs, allowH2: false, lookup: guardLookup(lookup) })
  // A literal address is never looked up.
  return (target, callback) =>
    isForbiddenAddress(target.hostname)
      ? callback(forbiddenAddress(target.hostname), null)
      : connect(target, callback)
}
