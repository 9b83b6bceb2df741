/** Lets a call in: resolves its key, counts it against its limits, and checks that its kind of key may call. */
import { ServiceError } from '../errors.ts'
import type { Caller, CallerKind } from '../keys/schema.ts'
import type { CallContext } from './context.ts'
import type { Hit } from './rate-limit.ts'

/** What an operation asks of its caller. */
export interface Admission {
  readonly callers: readonly CallerKind[]
  /** Under the agent shape a key of the wrong kind is 401, elsewhere 403. Decision: 4. */
  readonly errors: 'agent' | 'openai'
}

/**
 * Authenticates and counts the call; on success `context.caller` is set.
 * @throws ServiceError `missing_api_key`, `invalid_api_key`, `insufficient_permissions`, `rate_limit_exceeded`.
 */
export async function authorize(context: CallContext, admission: Admission): Promise<void> {
  const { bearer } = context.arrival
  const caller = bearer === undefined ? undefined : await context.deps.keys.find(bearer)
  if (caller === undefined) return refuseUnknown(context)
  await countRequest(context, caller)
  if (!admission.callers.includes(caller.kind)) throw wrongKind(caller.kind, admission)
  context.caller = caller
}

/** A failed authentication counts against its address; a good key from there is never held back. Decision: 3. */
async function refuseUnknown(context: CallContext): Promise<never> {
  const { deps, arrival } = context
  const limit = deps.config.limits.authFailures
  if (limit > 0) {
    const hit = await deps.limiter.hit(`auth:${addressGroup(arrival.clientAddress)}`, limit)
    if (hit.isLimited) {
      setLimitHeaders(context, hit)
      throw new ServiceError('rate_limit_exceeded', 'Too many calls without a valid key from this address.', {
        retryAfterSeconds: hit.retryAfterSeconds,
      })
    }
  }
  throw arrival.bearer === undefined
    ? new ServiceError(
        'missing_api_key',
        'No API key was sent: use the header `Authorization: Bearer <key>`.',
      )
    : new ServiceError('invalid_api_key', 'The API key is not valid.')
}

async function countRequest(context: CallContext, caller: Caller): Promise<void> {
  const { deps, arrival } = context
  const { limits } = deps.config
  const windows: [key: string, limit: number][] =
    caller.kind === 'parent'
      ? [[`parent:${caller.tenantId}`, limits.parent]]
      : [
          [`agent:${caller.agentId}`, limits.agent],
          [`agent:${caller.agentId}:${addressGroup(arrival.clientAddress)}`, limits.agentAddress],
        ]
  let tightest: Hit | undefined
  for (const [key, limit] of windows) {
    if (limit === 0) continue
    const hit = await deps.limiter.hit(key, limit)
    if (tightest === undefined || isTighter(hit, tightest)) tightest = hit
  }
  if (tightest === undefined) return
  setLimitHeaders(context, tightest)
  if (tightest.isLimited) {
    throw new ServiceError(
      'rate_limit_exceeded',
      `Too many requests: at most ${tightest.limit} a minute. Try again in ${tightest.retryAfterSeconds} s.`,
      { retryAfterSeconds: tightest.retryAfterSeconds },
    )
  }
}

/** Of two windows that are both used up, the one that opens later decides. */
function isTighter(hit: Hit, than: Hit): boolean {
  if (hit.isLimited !== than.isLimited) return hit.isLimited
  return hit.isLimited ? hit.retryAfterSeconds > than.retryAfterSeconds : hit.remaining < than.remaining
}

function setLimitHeaders(context: CallContext, hit: Hit): void {
  context.setHeader('X-RateLimit-Limit', String(hit.limit))
  context.setHeader('X-RateLimit-Remaining', String(hit.remaining))
  context.setHeader('X-RateLimit-Reset', String(hit.resetAt))
}

function wrongKind(kind: CallerKind, { errors, callers }: Admission): ServiceError {
  if (errors === 'agent' && kind === 'agent') {
    return new ServiceError('invalid_api_key', 'This call needs a parent key; an agent key was sent.')
  }
  const needed = callers.map((caller) => (caller === 'parent' ? 'a parent key' : 'an agent key')).join(' or ')
  return new ServiceError('insufficient_permissions', `This call needs ${needed}.`)
}

/** One IPv6 subscriber owns a whole /64, so that is what is counted. */
function addressGroup(address: string): string {
  if (!address.includes(':')) return address
  return address.split('::')[0]?.split(':').slice(0, 4).join(':') ?? address
}
