/** The access steps: who is calling, how often, from which pages, what they may call, and how large their bodies may be. */

import type { IncomingHttpHeaders } from 'node:http'
import ipaddr from 'ipaddr.js'
import type { Config } from '../config/config.ts'
import { hasNoBody, type ImplicitCredentials, mediaTypeOf } from '../http/request.ts'
import { ServiceError } from '../lib/errors.ts'
import type { Hit, Quota } from '../replicas/limits.ts'
import type { Dependencies } from './dependencies.ts'
import type { AnyCaller, AuthPolicy, CallContext, CallerKind, RequestMetadata } from './operation.ts'

/** A call and the policy it has to meet; a preflight has none. */
export interface GuardedCall {
  readonly context: CallContext<AnyCaller, Dependencies>
  readonly auth: AuthPolicy | undefined
}

export type AccessStep = (call: GuardedCall) => Promise<void> | void

export async function authenticate({ context, auth }: GuardedCall): Promise<void> {
  if (auth === undefined || auth.callers.length === 0) return
  const caller = await context.deps.authenticator.find(context.metadata)
  // Treats an artifact token as an invalid key where tokens are not accepted.
  const isMisplacedToken = caller?.kind === 'token' && !auth.callers.includes('token')
  if (caller === undefined || isMisplacedToken) return rejectCredentials(context)
  context.caller = caller
}

export function checkPermission({ context, auth }: GuardedCall): void {
  if (auth === undefined || auth.callers.length === 0) return
  const { caller } = context
  if (!auth.callers.includes(caller.kind)) throw rejectKind(auth)
  if (auth.needs !== undefined) assertUser(caller, auth.needs)
}

export async function rejectCredentials(
  context: CallContext<AnyCaller, Dependencies>,
  messages = keyMessages,
): Promise<never> {
  await limitAuthFailures(context)
  const { bearer, token } = context.metadata
  throw bearer === undefined && token === undefined
    ? new ServiceError('missing_api_key', messages.missing)
    : new ServiceError('invalid_api_key', messages.invalid)
}

const keyMessages = {
  missing: 'No API key was sent: use the header `Authorization: Bearer <key>`.',
  invalid: 'The API key is not valid.',
}

function rejectKind({ callers, wrongKind }: AuthPolicy): ServiceError {
  if (wrongKind !== undefined)
    return new ServiceError(wrongKind, 'This call needs a parent key; an agent key was sent.')
  const needed = callers.map((caller) => credentials[caller]).join(' or ')
  return new ServiceError('insufficient_permissions', `This call needs ${needed}.`)
}

const credentials: Readonly<Record<CallerKind, string>> = {
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

export function checkSameOrigin({ context, auth }: GuardedCall): void {
  if (auth !== undefined) assertSameOrigin(context.metadata, context.deps.config, auth.implicitBodyType)
}

/** The media type of a body must be one that a form cannot send. */
export function assertSameOrigin(
  { implicit }: RequestMetadata,
  { server, forwardedAuth }: Pick<Config, 'server' | 'forwardedAuth'>,
  mediaType = 'application/json',
): void {
  if (implicit === undefined || changesNothing(implicit)) return
  const { headers } = implicit
  // A browser sends a cookie only to the host that set it, so `Host` is trustworthy there. A proxy may forward any host.
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
  if (!hasNoBody(implicit) && mediaTypeOf(implicit) !== mediaType) {
    throw new ServiceError('unsupported_media_type', `Without a key a body is sent as ${mediaType}.`)
  }
}

/** In the upload protocol a header can name another method than the request's own. */
function changesNothing({ method, headers }: ImplicitCredentials): boolean {
  return (method === 'GET' || method === 'HEAD') && headers['x-http-method-override'] === undefined
}

/** The origin of the page that makes the request; undefined without one and for pages of this service. */
export function foreignOriginOf(
  headers: IncomingHttpHeaders,
  publicUrl: string | undefined,
): string | undefined {
  return isOwnOrigin(headers, publicUrl) || isOwnHost(headers) ? undefined : headers.origin
}

function isOwnOrigin(headers: IncomingHttpHeaders, publicUrl: string | undefined): boolean {
  if (headers['sec-fetch-site'] === 'same-origin') return true
  return publicUrl !== undefined && headers.origin === new URL(publicUrl).origin
}

/** Browsers send `Sec-Fetch-Site` to secure origins and to localhost only. */
function isOwnHost({ origin, host }: IncomingHttpHeaders): boolean {
  return origin !== undefined && host !== undefined && /^https?:\/\/(.+)$/.exec(origin)?.[1] === host
}

export function limitBodyBytes(
  { limits }: Pick<Config, 'limits'>,
  caller: Pick<AnyCaller, 'kind'> | undefined,
  maxBytes: number,
): number {
  return caller?.kind === 'agent' ? Math.min(maxBytes, limits.maxAgentBodyBytes) : maxBytes
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
