/** Implements the access checks: authentication, permissions, rate limits, same origin and body size. */

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import ipaddr from 'ipaddr.js'
import type { Config } from '../config/config.ts'
import { hasNoBody, type ImplicitCredentials, MAX_JSON_VALUES, mediaTypeOf } from '../http/request.ts'
import { ServiceError } from '../lib/errors.ts'
import { type JsonOutline, outlineOf } from '../lib/formats/json.ts'
import type { Hit, Quota } from '../replicas/limits.ts'
import type { Dependencies } from './dependencies.ts'
import type { AnyCaller, AuthPolicy, CallContext, CallerKind, RequestMetadata } from './operation.ts'

/** A call with its access policy; `auth` is undefined for a preflight. */
export interface GuardedCall {
  readonly context: CallContext<AnyCaller, Dependencies>
  readonly auth: AuthPolicy | undefined
}

export type AccessStep = (call: GuardedCall) => Promise<void> | void

export function authenticate(call: GuardedCall): Promise<void> | void {
  const { context, auth } = call
  if (auth === undefined || auth.callers.length === 0) return
  const caller = context.deps.authenticator.find(context.metadata)
  // Checks a cached caller without a promise, to save CPU time.
  return caller instanceof Promise
    ? caller.then((found) => acceptCaller(call, auth, found))
    : acceptCaller(call, auth, caller)
}

function acceptCaller(
  { context }: GuardedCall,
  auth: AuthPolicy,
  caller: AnyCaller | undefined,
): Promise<void> | void {
  // Treats an artifact token as an invalid key if the operation does not accept tokens.
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
  missing: 'The API key is missing; send it in the `Authorization: Bearer <key>` header.',
  invalid: 'The API key is invalid.',
}

function rejectKind({ callers, wrongKind }: AuthPolicy): ServiceError {
  if (wrongKind !== undefined)
    return new ServiceError(
      wrongKind,
      'This operation requires a parent key, but the request contains an agent key.',
    )
  const needed = callers.map((caller) => credentials[caller]).join(' or ')
  return new ServiceError('insufficient_permissions', `This operation requires ${needed}.`)
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
      'This operation requires a signed-in user; API keys are not accepted.',
    )
  }
  if (needs === 'administrator' && !user.isAdministrator) {
    throw new ServiceError('insufficient_permissions', 'This operation requires an administrator.')
  }
}

export function checkSameOrigin({ context, auth }: GuardedCall): void {
  if (auth !== undefined) assertSameOrigin(context.metadata, context.deps.config, auth.implicitBodyType)
}

/**
 * Protects calls with implicit credentials against CSRF; `mediaType` must be a type that HTML forms cannot
 * send.
 */
export function assertSameOrigin(
  { implicit }: RequestMetadata,
  { server, forwardedAuth }: Pick<Config, 'server' | 'forwardedAuth'>,
  mediaType = 'application/json',
): void {
  if (implicit === undefined || changesNothing(implicit)) return
  const { headers } = implicit
  // Without a proxy, the credentials are a cookie. Browsers send it only to the host that set it, so `Host`
  // can be trusted.
  const isOwn = isOwnOrigin(headers, server.publicUrl) || (forwardedAuth === undefined && isOwnHost(headers))
  if (!isOwn) {
    throw new ServiceError('insufficient_permissions', 'Cross-site requests require an API key.')
  }
  if (headers['x-requested-with'] === undefined) {
    throw new ServiceError(
      'insufficient_permissions',
      'The X-Requested-With header is required when no API key is sent.',
    )
  }
  if (!hasNoBody(implicit) && mediaTypeOf(implicit) !== mediaType) {
    throw new ServiceError(
      'unsupported_media_type',
      `Content-Type: must be ${mediaType} when no API key is sent.`,
    )
  }
}

/** Returns true if the method only reads. The upload protocol can override the method with a header. */
function changesNothing({ method, headers }: ImplicitCredentials): boolean {
  return (method === 'GET' || method === 'HEAD') && headers['x-http-method-override'] === undefined
}

/**
 * Returns the calling page's origin, or undefined if no page is calling or the page belongs to this service.
 */
export function foreignOriginOf(
  headers: IncomingHttpHeaders,
  publicUrl: string | undefined,
): string | undefined {
  const { origin } = headers
  if (origin === undefined) return undefined
  return isOwnOrigin(headers, publicUrl) || isOwnHost(headers) ? undefined : origin
}

function isOwnOrigin(headers: IncomingHttpHeaders, publicUrl: string | undefined): boolean {
  if (headers['sec-fetch-site'] === 'same-origin') return true
  return publicUrl !== undefined && headers.origin === new URL(publicUrl).origin
}

/**
 * Compares `Origin` with `Host`, because browsers send `Sec-Fetch-Site` only to HTTPS origins and localhost.
 */
function isOwnHost({ origin, host }: IncomingHttpHeaders): boolean {
  return origin !== undefined && host !== undefined && /^https?:\/\/(.+)$/.exec(origin)?.[1] === host
}

/** Maximum body size of an operation that needs no key, such as sign-in. */
const MAX_ANONYMOUS_BYTES = 16 * 1024

/** Returns the body limit in bytes; `caller` is undefined for operations that need no key. */
export function limitBodyBytes(
  { config: { limits }, attachmentBytes }: Pick<Dependencies, 'config' | 'attachmentBytes'>,
  { headers }: Pick<IncomingMessage, 'headers'>,
  caller: AnyCaller | undefined,
  maxBytes: number,
): number | Promise<number> {
  if (caller === undefined) return Math.min(maxBytes, MAX_ANONYMOUS_BYTES)
  if (caller.kind !== 'agent') return maxBytes
  const usual = Math.min(maxBytes, limits.maxAgentBodyBytes)
  // Reads the agent only for large bodies, and for bodies that do not declare their length.
  if (Number(headers['content-length'] ?? Number.POSITIVE_INFINITY) <= usual) return usual
  const add = (bytes: number) => Math.min(maxBytes, usual + bytes)
  const extra = attachmentBytes(caller)
  return extra instanceof Promise ? extra.then(add) : add(extra)
}

/** Bytes charged as one request. */
const BYTES_PER_REQUEST = 256 * 1024

/** Lower than for JSON, because parsing YAML costs far more. */
export const DEFINITION_BYTES_PER_REQUEST = 16 * 1024

/** Number of requests charged for a body with the maximum number of values. */
const REQUESTS_FOR_ALL_VALUES = 10

export interface BodyCost {
  readonly maxJsonValues?: number | undefined
  readonly bytesPerRequest?: number | undefined
}

/** Returns the body's outline, or undefined for a body so short that its values cost at most one request. */
export function outlineOfBody(
  bytes: Buffer,
  { maxJsonValues = MAX_JSON_VALUES }: BodyCost,
): JsonOutline | undefined {
  const isShort = bytes.length <= maxJsonValues / REQUESTS_FOR_ALL_VALUES
  return isShort ? undefined : outlineOf(bytes, maxJsonValues)
}

/** Returns the number of requests charged for a body. */
export function requestsOf(
  sizeBytes: number,
  outline: JsonOutline | undefined,
  { maxJsonValues = MAX_JSON_VALUES, bytesPerRequest = BYTES_PER_REQUEST }: BodyCost,
): number {
  const byValues = ((outline?.values ?? 0) * REQUESTS_FOR_ALL_VALUES) / maxJsonValues
  return Math.max(1, Math.ceil(sizeBytes / bytesPerRequest), Math.ceil(byValues))
}

export function limitRate({ context, auth }: GuardedCall): Promise<void> | void {
  if (auth === undefined || auth.callers.length === 0) return
  const { caller, deps, metadata } = context
  // Visitors can have upload tokens, so requests with these tokens are always counted.
  if (auth.isUncounted && !(caller.kind === 'token' && caller.use !== 'view')) return
  if (caller.kind === 'agent') {
    const address = addressGroup(metadata.clientAddress)
    deps.addressSharing.record(address, caller.agentId, metadata.ignoredForwardedFor)
  }
  return countRequest(context, caller)
}

type LimitedContext = CallContext<AnyCaller, Pick<Dependencies, 'config' | 'metrics' | 'shared'>>

export function countRequest(context: LimitedContext, caller: AnyCaller): Promise<void> | void {
  const hit = hitQuotas(context, caller, oneRequest)
  return hit instanceof Promise
    ? hit.then((counted) => assertInLimit(context, counted))
    : assertInLimit(context, hit)
}

const oneRequest = () => 1

function assertInLimit(context: LimitedContext, hit: Hit | undefined): void {
  if (hit?.isLimited) rejectLimited(context, hit, `Too many requests: the limit is ${hit.limit} per minute.`)
}

/**
 * Charges the rest of a large request that was already counted once. `requests` is the whole charge, which is
 * capped at the limit so that the request can succeed on its own.
 */
export function chargeRequest(
  context: LimitedContext,
  caller: AnyCaller,
  requests: number,
): Promise<void> | undefined {
  return requests <= 1 ? undefined : chargeLargeRequest(context, caller, requests)
}

async function chargeLargeRequest(
  context: LimitedContext,
  caller: AnyCaller,
  requests: number,
): Promise<void> {
  const hit = await hitQuotas(context, caller, (limit) => Math.min(requests, limit) - 1)
  if (!hit?.isLimited) return
  const problem = `Too many large requests: this one counts as ${requests} of at most ${hit.limit} requests per minute.`
  rejectLimited(context, hit, problem)
}

function hitQuotas(
  context: LimitedContext,
  caller: AnyCaller,
  costOf: (smallestLimit: number) => number,
): Hit | undefined | Promise<Hit> {
  const quotas = listQuotas(context, caller)
  if (!hasQuota(quotas)) return undefined
  const cost = costOf(smallestLimit(quotas))
  if (cost < 1) return undefined
  const hit = context.deps.shared.limiter.hit(quotas, cost)
  return hit instanceof Promise
    ? hit.then((counted) => setLimitHeaders(context, counted))
    : setLimitHeaders(context, hit)
}

function hasQuota(quotas: Quota[]): quotas is [Quota, ...Quota[]] {
  return quotas.length > 0
}

function smallestLimit(quotas: readonly Quota[]): number {
  let smallest = Number.POSITIVE_INFINITY
  for (const { limit } of quotas) smallest = Math.min(smallest, limit)
  return smallest
}

function rejectLimited({ deps }: LimitedContext, { retryAfterSeconds }: Hit, problem: string): never {
  deps.metrics.callLimited('requests')
  const message = `${problem} Try again in ${retryAfterSeconds} s.`
  throw new ServiceError('rate_limit_exceeded', message, { retryAfterSeconds })
}

/** Lists the quotas of a caller; in the settings, 0 means no limit. */
function listQuotas({ deps, metadata }: LimitedContext, caller: AnyCaller): Quota[] {
  const { limits } = deps.config
  if (caller.kind === 'token')
    return [{ key: `upload:${caller.tenantId}:${caller.artifactId}`, limit: limits.uploadToken }]
  const quotas: Quota[] = []
  if (caller.kind === 'parent') {
    const limit = lowerLimit(limits.parent, caller.ownLimits?.requestsPerMinute)
    if (limit > 0) quotas.push({ key: `parent:${caller.tenantId}`, limit })
  } else if (caller.kind === 'agent') {
    const agent = `agent:${caller.agentId}`
    if (limits.agent > 0) quotas.push({ key: agent, limit: limits.agent })
    const limit = limits.agentAddress
    if (limit > 0) quotas.push({ key: `${agent}:${addressGroup(metadata.clientAddress)}`, limit })
  }
  return quotas
}

/** Returns the lower limit; 0 in the settings means no limit. */
export function lowerLimit(setting: number, own: number | null | undefined): number {
  if (own == null) return setting
  return setting === 0 ? own : Math.min(setting, own)
}

/**
 * Counts a call without valid credentials against its client address's limit. @throws ServiceError
 * `rate_limit_exceeded` above this limit, which never affects calls with valid keys.
 */
export async function limitAuthFailures(context: LimitedContext): Promise<void> {
  const { deps, metadata } = context
  const limit = deps.config.limits.authFailures
  if (limit <= 0) return
  const hit = await deps.shared.limiter.hit([{ key: `auth:${addressGroup(metadata.clientAddress)}`, limit }])
  if (!hit.isLimited) return
  deps.metrics.callLimited('authentication')
  setLimitHeaders(context, hit)
  throw new ServiceError(
    'rate_limit_exceeded',
    'Too many requests from this address without a valid API key.',
    {
      retryAfterSeconds: hit.retryAfterSeconds,
    },
  )
}

function setLimitHeaders(context: CallContext<AnyCaller>, hit: Hit): Hit {
  context.setHeader('X-RateLimit-Limit', String(hit.limit))
  context.setHeader('X-RateLimit-Remaining', String(hit.remaining))
  context.setHeader('X-RateLimit-Reset', String(hit.resetAt))
  return hit
}

/** Groups IPv6 addresses by /64, because a /64 usually belongs to one subscriber. */
export function addressGroup(address: string): string {
  if (!address.includes(':')) return address
  return ipaddr.IPv6.parse(address).parts.slice(0, 4).join(':')
}
