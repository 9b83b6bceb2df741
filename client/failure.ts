/** Converts every failed call to one error format. */
import { isTRPCClientError } from '@trpc/client'
import type { AppRouter } from '../src/server/api.ts'
import { t } from './strings/language.ts'

export interface Failure {
  readonly message: string
  /** The server's error code; `offline` if there was no response; `unknown` for any other error. */
  readonly code: string
  /** The invalid field, if there is one. */
  readonly param: string | undefined
  /** HTTP status; 0 if there was no response. */
  readonly status: number
  /** Identifies the request in the server's log; undefined without a response from the server. */
  readonly requestId: string | undefined
}

/** Thrown when the sign-in proxy rejects a request before it reaches Parley. */
export class ProxyRejection extends Error {}

export function toFailure(thrown: unknown): Failure {
  if (!isTRPCClientError<AppRouter>(thrown)) {
    const message = thrown instanceof Error ? thrown.message : t('common.somethingWrong')
    return { message, code: 'unknown', param: undefined, status: 0, requestId: undefined }
  }
  const data: { httpStatus?: number; code?: string; param?: string | null } = thrown.data ?? {}
  if (thrown.cause instanceof ProxyRejection) {
    return {
      message: t('common.notSignedIn'),
      code: 'unknown',
      param: undefined,
      status: 401,
      requestId: undefined,
    }
  }
  if (data.httpStatus === undefined) {
    return {
      message: t('common.unreachable'),
      code: 'offline',
      param: undefined,
      status: 0,
      requestId: undefined,
    }
  }
  const { httpStatus: status, code = 'unknown', param } = data
  const requestId = readRequestId(thrown.meta)
  return { message: thrown.message, code, param: param ?? undefined, status, requestId }
}

/** Reads the response that tRPC's link adds to its errors. */
function readRequestId(meta: Record<string, unknown> | undefined): string | undefined {
  const { response } = meta ?? {}
  return response instanceof Response ? (response.headers.get('X-Request-Id') ?? undefined) : undefined
}

/** Returns whether a call failed because the session is missing or has ended. */
export function isSignedOut(thrown: unknown): boolean {
  return toFailure(thrown).status === 401
}

/** Returns the message for a form, or undefined if the sign-in dialog is shown instead. */
export function problemOf(thrown: unknown): string | undefined {
  return thrown === null || isSignedOut(thrown) ? undefined : toFailure(thrown).message
}
