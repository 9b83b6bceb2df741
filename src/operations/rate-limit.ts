/** Limits how often a caller may call, and how often an address may fail to authenticate. The limits are settings. */
import ipaddr from 'ipaddr.js'
import { ServiceError } from '../lib/errors.ts'
import type { Hit, Quota } from '../replicas/rate-limiter.ts'
import type { Dependencies } from './dependencies.ts'
import type { AnyCaller, AuthPolicy, CallContext } from './operation.ts'

/** A call and the policy it has to meet; a preflight has none. */
export interface GuardedCall {
  readonly context: CallContext<AnyCaller, Dependencies>
  readonly auth: AuthPolicy | undefined
}

export async function limitRate({ context, auth }: GuardedCall): Promise<void> {
  if (auth === undefined || auth.callers.length === 0 || auth.isUncounted) return
  await countRequest(context, context.caller)
}

export async function countRequest(
  context: CallContext<AnyCaller, Dependencies>,
  caller: AnyCaller,
): Promise<void> {
  const [quota, ...others] = listQuotas(context, caller).filter(({ limit }) => limit > 0)
  if (quota === undefined) return
  const hit = await context.deps.shared.limiter.hit([quota, ...others])
  setLimitHeaders(context, hit)
  if (!hit.isLimited) return
  context.deps.metrics.callLimited('requests')
  throw new ServiceError(
    'rate_limit_exceeded',
    `Too many requests: at most ${hit.limit} a minute. Try again in ${hit.retryAfterSeconds} s.`,
    { retryAfterSeconds: hit.retryAfterSeconds },
  )
}

function listQuotas({ deps, metadata }: CallContext<AnyCaller, Dependencies>, caller: AnyCaller): Quota[] {
  const { limits } = deps.config
  if (caller.kind === 'token') return []
  if (caller.kind === 'parent') return [{ key: `parent:${caller.tenantId}`, limit: limits.parent }]
  const agent = `agent:${caller.agentId}`
  return [
    { key: agent, limit: limits.agent },
    { key: `${agent}:${addressGroup(metadata.clientAddress)}`, limit: limits.agentAddress },
  ]
}

/** Counts a call without valid credentials against its address; valid keys from that address are not limited by it. */
export async function limitAuthFailures(context: CallContext<AnyCaller, Dependencies>): Promise<void> {
  const { deps, metadata } = context
  const limit = deps.config.limits.authFailures
  if (limit <= 0) return
  const hit = await deps.shared.limiter.hit([{ key: `auth:${addressGroup(metadata.clientAddress)}`, limit }])
  if (!hit.isLimited) return
  deps.metrics.callLimited('authentication')
  setLimitHeaders(context, hit)
  throw new ServiceError('rate_limit_exceeded', 'Too many calls without a valid key from this address.', {
    retryAfterSeconds: hit.retryAfterSeconds,
  })
}

function setLimitHeaders(context: CallContext<AnyCaller>, hit: Hit): void {
  context.setHeader('X-RateLimit-Limit', String(hit.limit))
  context.setHeader('X-RateLimit-Remaining', String(hit.remaining))
  context.setHeader('X-RateLimit-Reset', String(hit.resetAt))
}

/** Groups IPv6 addresses by /64, because one subscriber owns a whole /64. */
export function addressGroup(address: string): string {
  if (!address.includes(':')) return address
  return ipaddr.IPv6.parse(address).parts.slice(0, 4).join(':')
}
