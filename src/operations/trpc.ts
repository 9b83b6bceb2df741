/** The typed door's procedures: how an operation record runs under tRPC, and how its failures look there. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type AnyTRPCRouter,
  initTRPC,
  TRPCError,
  type TRPCMutationProcedure,
  type TRPCQueryProcedure,
} from '@trpc/server'
import { createExpressMiddleware } from '@trpc/server/adapters/express'
import type { RequestHandler } from 'express'
import { ZodError, z } from 'zod'
import { askForBody, MAX_JSON_VALUES, mediaTypeOf, parseJson, readBody } from '../http/request.ts'
import { toPairs } from '../http/response.ts'
import { reasons, ServiceError, toServiceError } from '../lib/errors.ts'
import { OTHER } from '../telemetry/model-metrics.ts'
import { assertOwnPage, authorize, findCaller } from './authorize.ts'
import type { Dependencies } from './dependencies.ts'
import { fromEnvelope, toEnvelope } from './envelope.ts'
import { errorHeaders, logFailure, toInvalidValue } from './http-call.ts'
import { largestBodyOf } from './largest-body.ts'
import {
  type AnyCaller,
  type Arrival,
  CallContext,
  JsonBytes,
  type NamedOperation,
  type Operation,
  type OperationKind,
} from './operation.ts'
import { readTypedInput } from './typed-input.ts'

/** tRPC copies the fields of its context about, so the call travels in one. */
export interface RpcContext {
  readonly call: CallContext<AnyCaller, Dependencies>
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

/** The record, as a procedure carries it. */
export interface OperationMeta {
  readonly operation: Operation
}

/** Where no field is required the whole may be left out. */
type InputOf<I extends z.ZodType> =
  Record<never, never> extends z.input<I> ? z.input<I> | undefined : z.input<I>

type ProcedureOf<O> = O extends {
  kind: infer Kind extends OperationKind
  input: infer I extends z.ZodType
  output: infer Out extends z.ZodType
}
  ? Kind extends 'query'
    ? TRPCQueryProcedure<{ input: InputOf<I>; output: z.output<Out>; meta: OperationMeta }>
    : TRPCMutationProcedure<{ input: InputOf<I>; output: z.output<Out>; meta: OperationMeta }>
  : never

/** Operations by module and name. */
export type Operations<D = never> = Readonly<Record<string, Readonly<Record<string, Operation<D>>>>>

type Procedures<T extends Operations> = { [M in keyof T]: { [V in keyof T[M]]: ProcedureOf<T[M][V]> } }

/** The operations as a tRPC router. */
export function createRouter<T extends Operations>(operations: T) {
  const procedures = Object.entries(operations).map(([module, named]) => [
    module,
    Object.fromEntries(Object.entries(named).map(([name, one]) => [name, operationProcedure(one)])),
  ])
  return t.router(Object.fromEntries(procedures) as unknown as Procedures<T>)
}

/** The record as a procedure: admit, validate, run, in that order. */
function operationProcedure(operation: Operation) {
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
      // The list of operations is checked against what the service provides.
      const answer = await operation.run(call as never)
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

/** What is called, as a tRPC router and as the list it was made from. */
export interface Api {
  readonly router: AnyTRPCRouter
  readonly operations: readonly NamedOperation[]
}

/** The names that calls can have. */
interface Names {
  readonly all: ReadonlySet<string>
  /** The most values of the JSON of those that take more than usual. */
  readonly maxJsonValues: ReadonlyMap<string, number>
  /** Of operations that ask nobody who they are. */
  readonly forEverybody: ReadonlySet<string>
}

function namesOf(operations: readonly NamedOperation[]): Names {
  const open = operations.filter(({ operation }) => operation.wire.callers.length === 0)
  return {
    all: new Set(operations.map(({ name }) => name)),
    maxJsonValues: new Map(
      operations.map(({ name, operation }) => [name, operation.wire.maxJsonValues ?? MAX_JSON_VALUES]),
    ),
    forEverybody: new Set(open.map(({ name }) => name)),
  }
}

/** The most calls in one batch. */
const MAX_BATCH = 10

/** The least that a body may hold, however small the operator makes a chat's. */
const MAX_BYTES_AT_LEAST = 1024 * 1024

/** The door, to be mounted before any body parser; `arrivalOf` tells what is known of a request. */
export function createTypedDoor(
  deps: Dependencies,
  { router, operations }: Api,
  arrivalOf: (request: IncomingMessage) => Arrival,
): RequestHandler {
  const names = namesOf(operations)
  const contexts = new WeakMap<IncomingMessage, RpcContext>()
  const answer = createExpressMiddleware({
    router,
    maxBatchSize: MAX_BATCH,
    createContext: ({ req }) => contexts.get(req) as RpcContext,
    responseMeta: ({ ctx, errors: [error] }) => ({
      // Of a header that several calls of a batch have set, the last one stands.
      headers: Object.fromEntries(
        toPairs([
          'Vary',
          'Authorization, Origin, trpc-accept, accept',
          ...(ctx?.call.headers ?? []),
          // tRPC forgets to say so of what it refuses before it knows the procedure.
          ...(error === undefined
            ? []
            : ['Content-Type', 'application/json', ...errorHeaders(toRpcFailure(error))]),
        ]),
      ),
    }),
    onError({ error, path, ctx }) {
      logFailure(deps, { ...ctx?.call.arrival.watch.line, path: `/trpc/${path ?? ''}` }, toRpcFailure(error))
    },
  })

  return async (request, response, next) => {
    const call = new CallContext<AnyCaller, Dependencies>(deps, arrivalOf(request))
    const name = nameOf(request, names)
    call.arrival.watch.found(name, `/trpc/${name}`)
    const body = await readCallBody(call, request, response, names).catch(toServiceError)
    contexts.set(request, { call, badBody: body instanceof ServiceError ? body : undefined })
    request.body = body instanceof ServiceError ? '' : body
    return answer(request, response, next)
  }
}

/** What a request asks for, in a word of the table: several calls in one are a batch. */
function nameOf(request: IncomingMessage, { all }: Names): string {
  const [name = '', ...others] = listNames(request)
  if (others.length > 0) return 'batch'
  return all.has(name) ? name : OTHER
}

function listNames({ url = '' }: IncomingMessage): string[] {
  const [path = ''] = url.split('?')
  return path.slice(1).split(',')
}

/** Whether the call, or each of a batch of calls, asks nobody who they are. */
function isForEverybody(request: IncomingMessage, { forEverybody }: Names): boolean {
  return listNames(request).every((name) => forEverybody.has(name))
}

/** The most values of a call, or of a batch that holds such a call. */
function maxJsonValuesOf(request: IncomingMessage, { maxJsonValues }: Names): number {
  return Math.max(...listNames(request).map((name) => maxJsonValues.get(name) ?? MAX_JSON_VALUES))
}

/**
 * The body as the text tRPC parses; empty for an unknown caller, whom the procedures refuse without it.
 * @throws ServiceError as the REST door does for a body that is too large, too slow or no JSON.
 */
async function readCallBody(
  call: CallContext<AnyCaller, Dependencies>,
  request: IncomingMessage,
  response: ServerResponse,
  names: Names,
): Promise<string> {
  if (request.method !== 'POST') return ''
  const isOpen = isForEverybody(request, names)
  const caller = isOpen ? undefined : await findCaller(call)
  if (caller === undefined && !isOpen) return ''
  assertOwnPage(call.arrival, call.deps.config)
  if (mediaTypeOf(request) !== 'application/json') {
    throw new ServiceError('unsupported_media_type', 'A call is sent as application/json.')
  }
  askForBody(request, response)
  const { clock, config } = call.deps
  const { limits, timings } = config
  const maxBytes = largestBodyOf(config, caller, Math.max(limits.maxBodyBytes, MAX_BYTES_AT_LEAST))
  const bytes = await readBody(
    request,
    { maxBytes, totalMs: timings.bodyMs, idleMs: timings.bodyIdleMs },
    clock,
  )
  if (bytes.length > 0) parseJson(bytes, maxJsonValuesOf(request, names))
  return bytes.toString()
}
