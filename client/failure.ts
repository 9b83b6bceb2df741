/** One shape for every failed call of the console. */
import { isTRPCClientError } from '@trpc/client'
import type { AppRouter } from '../src/server/api.ts'

export interface Failure {
  /** A sentence for the person. */
  readonly message: string
  /** The server's code, `offline` without an answer, or `unknown`. */
  readonly code: string
  /** The field at fault, if one is. */
  readonly param: string | undefined
  /** The status over HTTP; 0 without an answer. */
  readonly status: number
}

/** The sign-in proxy rejected the request itself. */
export class ProxyRejection extends Error {}

export function toFailure(thrown: unknown): Failure {
  if (!isTRPCClientError<AppRouter>(thrown)) {
    const message = thrown instanceof Error ? thrown.message : 'Something went wrong.'
    return { message, code: 'unknown', param: undefined, status: 0 }
  }
  const data: { httpStatus?: number; code?: string; param?: string | null } = thrown.data ?? {}
  if (thrown.cause instanceof ProxyRejection) {
    return { message: 'You are not signed in.', code: 'unknown', param: undefined, status: 401 }
  }
  if (data.httpStatus === undefined) {
    return { message: 'The server cannot be reached.', code: 'offline', param: undefined, status: 0 }
  }
  const { httpStatus: status, code = 'unknown', param } = data
  return { message: thrown.message, code, param: param ?? undefined, status }
}

/** The session is missing or has ended. */
export function isSignedOut(thrown: unknown): boolean {
  return toFailure(thrown).status === 401
}

/** The message a form shows for a failure; none when the sign-in dialog is shown instead. */
export function problemOf(thrown: unknown): string | undefined {
  return thrown === null || isSignedOut(thrown) ? undefined : toFailure(thrown).message
}
