/** The error bodies of the REST doors, and which path answers with which. */
import { reasons, type ServiceError } from '../errors.ts'

export type ErrorShape = 'agent' | 'openai' | 'artifact'

/** The shape of a path's errors, also where no operation matched. Decision: 4. */
export function errorShapeOf(path: string): ErrorShape {
  if (isAboutArtifacts(path)) return 'artifact'
  return /^\/v1\/(manager\/)?agents(\/|$)/.test(path) ? 'agent' : 'openai'
}

/** Whether a path is one of uploads and artifacts, which have a protocol of their own outside `/v1`. Decision: 3 (Doors). */
export function isAboutArtifacts(path: string): boolean {
  return /^\/(artifacts|upload|capabilities)(\/|$)/.test(path)
}

/** The body a failure is told in. Contract: Errors. */
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

/** The headers that belong to a failure, as a flat list. */
export function errorHeaders({ details, status }: ServiceError): string[] {
  const headers: string[] = []
  if (details.retryAfterSeconds !== undefined) headers.push('Retry-After', String(details.retryAfterSeconds))
  if (details.allow !== undefined) headers.push('Allow', details.allow.join(', '))
  if (status === 401) headers.push('WWW-Authenticate', 'Bearer')
  return headers
}
