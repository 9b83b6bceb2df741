/** Renders failures for REST clients and for the log. */
import type { z } from 'zod'
import { isAboutArtifacts } from '../http/response.ts'
import { withoutKeys } from '../lib/api-key.ts'
import { reasons, ServiceError } from '../lib/errors.ts'
import type { Dependencies } from './dependencies.ts'

export type ErrorShape = 'agent' | 'openai' | 'artifact'

/** Returns the error shape for a path, even if no operation matches it. */
export function errorShapeOf(path: string): ErrorShape {
  if (isAboutArtifacts(path)) return 'artifact'
  return /^\/v1\/(manager\/)?agents(\/|$)/.test(path) ? 'agent' : 'openai'
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
    },
  }
}

export function errorHeaders({ details, status }: ServiceError): string[] {
  const headers: string[] = []
  if (details.retryAfterSeconds !== undefined) headers.push('Retry-After', String(details.retryAfterSeconds))
  if (details.allow !== undefined) headers.push('Allow', details.allow.join(', '))
  if (status === 401) headers.push('WWW-Authenticate', 'Bearer')
  return headers
}

/** Reports the first problem as `path: problem`; `param` is the path. */
export function toInvalidValue(error: z.ZodError): ServiceError {
  const issue = mostSpecific(error.issues)
  const param = renderPath(issue.path)
  const isMissing = issue.message.endsWith(', received undefined')
  const problem = isMissing ? 'is required' : issue.message.replace(/^Invalid input: /, '')
  const message = param === '' ? problem : `${param}: ${problem}`
  return new ServiceError('invalid_value', message, param === '' ? {} : { param })
}

type Issue = z.core.$ZodIssue

/** Picks the union branch that matched deepest, which names the field that the caller must fix. */
function mostSpecific(issues: readonly Issue[]): Issue {
  const first = issues[0] as Issue
  if (first.code !== 'invalid_union' || first.errors.length === 0) return first
  const branches = first.errors.map((branch) => mostSpecific(branch))
  const deepest = branches.reduce((best, issue) => (issue.path.length > best.path.length ? issue : best))
  if (deepest.path.length > 0) return { ...deepest, path: [...first.path, ...deepest.path] }
  // A value that is too long has the right type, so its branch is the intended one.
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
