/** Lets a call in: resolves its key, counts it against its limits, and checks that its kind of key may call. */

import type { IncomingHttpHeaders } from 'node:http'
import ipaddr from 'ipaddr.js'
import type { Config } from '../config/config.ts'
import { type Ambient, hasNoBody, mediaTypeOf } from '../http/request.ts'
import { ServiceError } from '../lib/errors.ts'
import type { Hit, Quota } from '../replicas/rate-limiter.ts'
import type { Dependencies } from './dependencies.ts'
import type { AnyCaller, Arrival, CallContext, CallerKind } from './operation.ts'

/** What an operation asks of its caller. */
export interface Admission {
  /** Nobody is asked who they are where this is empty. */
  readonly callers: readonly CallerKind[]
  /** Under the agent shape a key of the wrong kind is 401, elsewhere 403. Decision: 4. */
  readonly errors: 'agent' | 'openai' | 'artifact'
  /** Somebody signed in, where a key is not enough. */
  readonly needs?: 'user' | 'administrator'
  readonly isUncounted?: true
  /** The media type of a body that comes without a key; JSON unless given. */
  readonly pageBody?: string
}

/**
 * Authenticates and counts the call; on success `context.caller` is set.
 * @throws ServiceError `missing_api_key`, `invalid_api_key`, `insufficient_permissions`, `rate_limit_exceeded`; without a key also
 * `invalid_value`, `unsupported_media_type`.
 */
export async function authorize(
  context: CallContext<AnyCaller, Dependencies>,
  admission: Admission,
): Promise<void> {
  if (admission.callers.length === 0) return assertOwnPage(context.arrival, context.deps.config)
  const caller = await findCaller(context)
  // Where tokens are of no use, one is as good as an unknown key.
  const isUseless = caller?.kind === 'token' && !admission.callers.includes('token')
  if (caller === undefined || isUseless) return refuseUnknown(context)
  if (!admission.isUncounted) await countRequest(context, caller)
  assertOwnPage(context.arrival, context.deps.config, admission.pageBody)
  if (!admission.callers.includes(caller.kind)) throw wrongKind(caller.kind, admission)
  if (admission.needs !== undefined) assertUser(caller, admission.needs)
  context.caller = caller
}

/** Counts a call that leads nowhere if its key is good: it is an authenticated one all the same. Decision: 3 (Rate limits). */
export async function countStray(context: CallContext<AnyCaller, Dependencies>): Promise<void> {
  const caller = await findCaller(context)
  if (caller !== undefined) await countRequest(context, caller)
}

/** Who is calling; undefined when nobody presented a good credential. */
export function findCaller({
  deps,
  arrival,
}: CallContext<AnyCaller, Pick<Dependencies, 'authenticator'>>): Promise<AnyCaller | undefined> | undefined {
  return deps.authenticator.find(arrival)
}

/**
 * Refuses a call that came without a good credential. It counts against its address; a good key from there is never held back.
 * `words` are what a caller without one, or with a wrong one, is told. Decision: 3.
 * @throws ServiceError `missing_api_key`, `invalid_api_key`, `rate_limit_exceeded`.
 */
export async function refuseUnknown(
  context: CallContext<AnyCaller, Dependencies>,
  words = aboutKeys,
): Promise<never> {
  const { deps, arrival } = context
  const limit = deps.config.limits.authFailures
  if (limit > 0) {
    const hit = await deps.shared.limiter.hit([{ key: `auth:${addressGroup(arrival.clientAddress)}`, limit }])
    if (hit.isLimited) {
      deps.metrics.callLimited('authentication')
      setLimitHeaders(context, hit)
      throw new ServiceError('rate_limit_exceeded', 'Too many calls without a valid key from this address.', {
        retryAfterSeconds: hit.retryAfterSeconds,
      })
    }
  }
  throw arrival.bearer === undefined && arrival.token === undefined
    ? new ServiceError('missing_api_key', words.missing)
    : new ServiceError('invalid_api_key', words.invalid)
}

const aboutKeys = {
  missing: 'No API key was sent: use the header `Authorization: Bearer <key>`.',
  invalid: 'The API key is not valid.',
}

async function countRequest(context: CallContext<AnyCaller, Dependencies>, caller: AnyCaller): Promise<void> {
  const [quota, ...others] = listQuotas(context, caller).filter(({ limit }) => limit > 0)
  if (quota === undefined) return
  const hit = await context.deps.shared.limiter.hit([quota, ...others])
  setLimitHeaders(context, hit)
  if (hit.isLimited) {
    context.deps.metrics.callLimited('requests')
    throw new ServiceError(
      'rate_limit_exceeded',
      `Too many requests: at most ${hit.limit} a minute. Try again in ${hit.retryAfterSeconds} s.`,
      { retryAfterSeconds: hit.retryAfterSeconds },
    )
  }
}

function listQuotas({ deps, arrival }: CallContext<AnyCaller, Dependencies>, caller: AnyCaller): Quota[] {
  const { limits } = deps.config
  if (caller.kind === 'token') return []
  if (caller.kind === 'parent') return [{ key: `parent:${caller.tenantId}`, limit: limits.parent }]
  const agent = `agent:${caller.agentId}`
  return [
    { key: agent, limit: limits.agent },
    { key: `${agent}:${addressGroup(arrival.clientAddress)}`, limit: limits.agentAddress },
  ]
}

function setLimitHeaders(context: CallContext<AnyCaller>, hit: Hit): void {
  context.setHeader('X-RateLimit-Limit', String(hit.limit))
  context.setHeader('X-RateLimit-Remaining', String(hit.remaining))
  context.setHeader('X-RateLimit-Reset', String(hit.resetAt))
}

function wrongKind(kind: CallerKind, { errors, callers }: Admission): ServiceError {
  if (errors === 'agent' && kind === 'agent') {
    return new ServiceError('invalid_api_key', 'This call needs a parent key; an agent key was sent.')
  }
  const needed = callers.map((caller) => credentials[caller]).join(' or ')
  return new ServiceError('insufficient_permissions', `This call needs ${needed}.`)
}

export const credentials: Readonly<Record<CallerKind, string>> = {
  parent: 'a parent key',
  agent: 'an agent key',
  token: 'a token for the artifact',
}

function assertUser(caller: AnyCaller, needs: 'user' | 'administrator'): void {
  const user = caller.kind === 'parent' ? caller.user : undefined
  if (user === undefined) {
    throw new ServiceError(
      'insufficient_permissions',
      'This call is for users who are signed in, not for keys.',
    )
  }
  if (needs === 'administrator' && !user.isAdministrator) {
    throw new ServiceError('insufficient_permissions', 'This call is for administrators only.')
  }
}

/** One IPv6 subscriber owns a whole /64, so that is what is counted. */
export function addressGroup(address: string): string {
  if (!address.includes(':')) return address
  return ipaddr.IPv6.parse(address).parts.slice(0, 4).join(':')
}

/**
 * Lets a call pass that changes nothing, or that carries a key, or that only a page of ours can make; a body has that media type, none
 * that a form could have. Security: 2.3. Decision: 10.
 * @throws ServiceError `insufficient_permissions`, `unsupported_media_type`.
 */
export function assertOwnPage(
  { ambient }: Arrival,
  { server, forwardedAuth }: Pick<Config, 'server' | 'forwardedAuth'>,
  mediaType = 'application/json',
): void {
  if (ambient === undefined || changesNothing(ambient)) return
  const { headers } = ambient
  // A cookie comes to the host alone that it was set for, so there its name in `Host` can be believed.
  const isOwn = isOwnOrigin(headers, server.publicUrl) || (forwardedAuth === undefined && isOwnHost(headers))
  if (!isOwn) {
    throw new ServiceError(
      'insufficient_permissions',
      'Without a key this can only be called from a page of this service.',
    )
  }
  if (headers['x-requested-with'] === undefined) {
    throw new ServiceError(
      'insufficient_permissions',
      'Without a key this call needs the header `X-Requested-With`.',
    )
  }
  if (!hasNoBody(ambient) && mediaTypeOf(ambient) !== mediaType) {
    throw new ServiceError('unsupported_media_type', `Without a key a body is sent as ${mediaType}.`)
  }
}

/** The upload protocol lets a header name another method than the request's own. */
function changesNothing({ method, headers }: Ambient): boolean {
  return (method === 'GET' || method === 'HEAD') && headers['x-http-method-override'] === undefined
}

function isOwnOrigin(headers: IncomingHttpHeaders, publicUrl: string | undefined): boolean {
  if (headers['sec-fetch-site'] === 'same-origin') return true
  return publicUrl !== undefined && headers.origin === new URL(publicUrl).origin
}

/** Browsers say `Sec-Fetch-Site` to encrypted pages and to this machine only. */
function isOwnHost({ origin, host }: IncomingHttpHeaders): boolean {
  return origin !== undefined && host !== undefined && /^https?:\/\/(.+)$/.exec(origin)?.[1] === host
}
