/** Renders failures for REST clients and logs. */
import type { z } from 'zod'
import { isAboutArtifacts } from '../http/response.ts'
import { withoutKeys } from '../lib/api-key.ts'
import { reasons, ServiceError } from '../lib/errors.ts'
import type { Dependencies } from './dependencies.ts'

export type ErrorShape = 'agent' | 'openai' | 'artifact'

/** Returns the path's error format, even if no operation matches the path. */
export function errorShapeOf(path: string): ErrorShape {
  if (isAboutArtifacts(path)) return 'artifact'
  return /^\/v1\/(manager\/)?(bin\/)?agents(\/|$)/.test(path) ? 'agent' : 'openai'
}

export function renderError(error: ServiceError, shape: ErrorShape): object {
  if (shape === 'artifact') return { ok: false, error: error.message }
  if (shape === 'agent') return { error: error.message, code: error.code }
  return {
    error: {
      message: error.message,
      type: reasons[error.reason].type,
      param: error.details.param ?? null,
      code: error.code,
      ...(error.details.lastEventId !== undefined && { last_event_id: error.details.lastEventId }),
      ...error.details.handover,
    },
  }
}

export function errorHeaders({ details, status }: ServiceError): string[] {
  const headers: string[] = []
  if (details.retryAfterSeconds !== undefined) headers.push('Retry-After', String(details.retryAfterSeconds))
  if (details.shouldRetry !== undefined) headers.push('X-Should-Retry', String(details.shouldRetry))
  if (details.allow !== undefined) headers.push('Allow', details.allow.join(', '))
  if (status === 401) headers.push('WWW-Authenticate', 'Bearer')
  return headers
}

/** Converts a validation error to `path: problem` for its first issue; `param` is the path. */
export function toInvalidValue(error: z.ZodError): ServiceError {
  const issue = mostSpecific(error.issues)
  const param = renderPath(issue.path)
  const problem = describeIssue(issue)
  const message = param === '' ? problem : `${param}: ${problem}`
  return new ServiceError('invalid_value', message, param === '' ? {} : { param })
}

type Issue = z.core.$ZodIssue

/** Matches zod's default messages; a schema's own `error` message does not match. */
const defaultMessage = /^(Too (big|small)|Invalid|Unrecognized)/

/** Returns the schema's own message, or a description of the expected value. */
function describeIssue(issue: Issue): string {
  if (issue.message.endsWith(', received undefined')) return 'is required'
  if (!defaultMessage.test(issue.message)) return issue.message
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${withArticle(issue.expected)}${issue.message.replace(/^.*, received /, ' (got ')})`
    case 'too_big':
      return describeBound(issue.origin, issue.inclusive === false ? 'less than' : 'at most', issue.maximum)
    case 'too_small':
      return describeBound(issue.origin, issue.inclusive === false ? 'more than' : 'at least', issue.minimum)
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map((value) => JSON.stringify(value)).join(', ')}`
    case 'unrecognized_keys':
      return `unknown ${issue.keys.length > 1 ? 'fields' : 'field'} ${issue.keys.map((key) => `'${key}'`).join(', ')}`
    case 'invalid_format':
      return issue.pattern === undefined ? 'has an invalid format' : `must match ${issue.pattern}`
    default:
      return 'is invalid'
  }
}

function withArticle(type: string): string {
  return /^[aeio]/.test(type) ? `an ${type === 'int' ? 'integer' : type}` : `a ${type}`
}

const units: Readonly<Record<string, string>> = { string: 'characters', array: 'items', record: 'fields' }

function describeBound(origin: string, bound: string, limit: number | bigint): string {
  const unit = units[origin]
  return unit === undefined ? `must be ${bound} ${limit}` : `must have ${bound} ${limit} ${unit}`
}

/**
 * Returns the issue of the union branch with the longest path, because it is probably about the field that
 * the client must fix.
 */
function mostSpecific(issues: readonly Issue[]): Issue {
  const first = issues[0] as Issue
  if (first.code !== 'invalid_union' || first.errors.length === 0) return first
  const branches = first.errors.map((branch) => mostSpecific(branch))
  const deepest = branches.reduce((best, issue) => (issue.path.length > best.path.length ? issue : best))
  if (deepest.path.length > 0) return { ...deepest, path: [...first.path, ...deepest.path] }
  // If a value is only too long, its type matches this branch, so the client probably meant this branch.
  const tooLong = branches.find(
    (issue) => issue.code === 'too_big' && ['array', 'string'].includes(issue.origin),
  )
  return tooLong === undefined ? first : { ...tooLong, path: first.path }
}

function renderPath(path: readonly PropertyKey[]): string {
  return path
    .map((step, index) =>
      typeof step === 'number' ? `[${step}]` : index === 0 ? String(step) : `.${String(step)}`,
    )
    .join('')
}

export function logFailure(
  { log, metrics }: Pick<Dependencies, 'log' | 'metrics'>,
  {
    requestId,
    traceId,
    path,
  }: { requestId?: string | undefined; traceId?: string | undefined; path: string },
  failure: ServiceError,
): void {
  metrics.callFailed(failure.reason)
  const line = { requestId, traceId, path: withoutKeys(path), reason: failure.reason }
  const text = failure.details.isQuoted
    ? 'rejected with a message from the provider'
    : withoutKeys(failure.message)
  const causedBy = { ...line, err: failure.details.cause }
  if (failure.reason === 'internal_error') log.error(causedBy, 'request failed')
  else if (failure.status >= 500) log.warn(causedBy, text)
  else log.debug(line, text)
}
