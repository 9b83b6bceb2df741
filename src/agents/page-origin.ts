/** Rejects calls with an agent key from pages that the agent's `embed.origins` does not list. */
import { ServiceError } from '../lib/errors.ts'
import type { GuardedCall } from '../operations/access.ts'
import type { AgentCaller } from '../operations/operation.ts'
import type { AgentDirectory } from './cache.ts'

/**
 * Rejects an agent key's call from a page whose origin is not in `embed.origins`; an empty list allows all
 * origins. This restricts only browsers, because other programs can omit `Origin`.
 * @throws ServiceError `insufficient_permissions`
 */
export function checkPageOrigin(
  { context, auth }: GuardedCall,
  agents: AgentDirectory,
): Promise<void> | void {
  const { foreignOrigin } = context.metadata
  if (foreignOrigin === undefined || auth === undefined || auth.callers.length === 0) return
  const { caller } = context
  if (caller.kind === 'agent') return assertListed(caller, foreignOrigin, agents)
}

async function assertListed(
  caller: AgentCaller,
  foreignOrigin: string,
  agents: AgentDirectory,
): Promise<void> {
  const agent = await agents.find(caller.tenantId, caller.agentId)
  const origins = agent?.definition.embed?.origins ?? []
  if (origins.length === 0 || origins.some((listed) => matchesOrigin(listed, foreignOrigin))) return
  throw new ServiceError(
    'insufficient_permissions',
    "Origin is not in this agent's embed.origins: add the page's origin to the agent's definition.",
  )
}

/**
 * Returns whether an `embed.origins` entry matches the origin, as in `frame-ancestors` (CSP 3, section
 * 6.7.2).
 */
export function matchesOrigin(listed: string, origin: string): boolean {
  if (!URL.canParse(origin)) return false
  const { protocol, hostname, port } = new URL(origin)
  const [, scheme, wildcard, host = '', listedPort = ''] =
    /^(https?:)\/\/(\*\.)?([^:]+)(?::(\d+))?$/.exec(listed.toLowerCase()) ?? []
  const isScheme = protocol === scheme || (scheme === 'http:' && protocol === 'https:')
  const isHost = wildcard === undefined ? hostname === host : hostname.endsWith(`.${host}`)
  return isScheme && isHost && port === withoutDefault(listedPort, protocol)
}

function withoutDefault(port: string, protocol: string): string {
  return port === (protocol === 'https:' ? '443' : '80') ? '' : port
}
