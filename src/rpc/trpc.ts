/** The typed door's procedures: how an operation record runs under tRPC, and how its failures look there. */
import { initTRPC, TRPCError } from '@trpc/server'
import { ZodError, z } from 'zod'
import { reasons, ServiceError, toServiceError } from '../errors.ts'
import { JsonBytes } from './answer.ts'
import { authorize } from './authorize.ts'
import type { CallContext } from './context.ts'
import { fromEnvelope, toEnvelope } from './envelope.ts'
import { toInvalidValue } from './invalid-value.ts'
import type { AnyOperation, OperationMeta } from './op.ts'
import { readTypedInput } from './typed-input.ts'

/** tRPC copies the fields of its context about, so the call travels in one. */
export interface RpcContext {
  readonly call: CallContext
  /** Why the request's body could not be used; told to callers that may call. */
  readonly badBody: ServiceError | undefined
}

const t = initTRPC
  .context<RpcContext>()
  .meta<OperationMeta>()
  .create({
    transformer: {
      input: { serialize: toEnvelope, deserialize: readTypedInput },
      output: { serialize: toEnvelope, deserialize: fromEnvelope },
    },
    isDev: false,
    // A quiet stream is kept open through proxies that close silent connections.
    jsonl: { pingMs: 15_000 },
    errorFormatter({ shape, error }) {
      const failure = toRpcFailure(error)
      return {
        ...shape,
        message: failure.message,
        data: {
          ...shape.data,
          httpStatus: failure.status,
          reason: failure.reason,
          code: failure.code,
          param: failure.details.param ?? null,
          // A stream's head is sent before it fails: it cannot carry `Retry-After`.
          retryAfterSeconds: failure.details.retryAfterSeconds ?? null,
        },
      }
    },
  })

export const router = t.router

/** The record as a procedure: admit, validate, run, in that order. */
export function operationProcedure(operation: AnyOperation) {
  const procedure = t.procedure
    .meta({ operation })
    .use(async ({ ctx, next }) => {
      if (operation.rpc === false) throw new TRPCError({ code: 'NOT_FOUND' })
      await authorize(ctx.call, operation.wire).catch(rethrowForRpc)
      if (ctx.badBody !== undefined) rethrowForRpc(ctx.badBody)
      return next()
    })
    .input(z.preprocess(toFields, operation.input))
    .output(operation.output)
  const resolve = async ({ ctx, input, signal }: ResolverCall) => {
    try {
      const call = { context: ctx.call, input, signal: signal ?? neverAborted, wantsEvents: false }
      const answer = await operation.run(call)
      return answer instanceof JsonBytes ? JSON.parse(answer.toString()) : answer
    } catch (thrown) {
      return rethrowForRpc(thrown)
    }
  }
  return operation.kind === 'query' ? procedure.query(resolve) : procedure.mutation(resolve)
}

/** Whoever needs to say nothing may say nothing: a call without an input is one without fields, as over REST. */
function toFields(input: unknown): unknown {
  return input === undefined ? {} : input
}

interface ResolverCall {
  readonly ctx: RpcContext
  readonly input: unknown
  readonly signal: AbortSignal | undefined
}

const neverAborted = new AbortController().signal

/** A failure of a room as tRPC's own error, so that its status and batch handling apply. */
function rethrowForRpc(thrown: unknown): never {
  const failure = toServiceError(thrown)
  throw new TRPCError({ code: reasons[failure.reason].rpc, message: failure.message, cause: failure })
}

/** What the caller may know of a failure under tRPC; tRPC's own refusals (bad input, unknown path) become ours. */
export function toRpcFailure(error: TRPCError): ServiceError {
  if (error.cause instanceof ServiceError) return error.cause
  if (error.code === 'BAD_REQUEST' && error.cause instanceof ZodError) return toInvalidValue(error.cause)
  switch (error.code) {
    case 'INTERNAL_SERVER_ERROR':
      return toServiceError(error.cause)
    case 'NOT_FOUND':
      return new ServiceError('not_found', 'There is no such procedure.')
    case 'METHOD_NOT_SUPPORTED':
      return new ServiceError('method_not_allowed', 'This procedure is called with the other method.')
    case 'UNSUPPORTED_MEDIA_TYPE':
      return new ServiceError('unsupported_media_type', 'A call is sent as application/json.')
    default:
      return new ServiceError('invalid_value', 'The request is not a valid call.')
  }
}
