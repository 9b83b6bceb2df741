/** Serves operations as tRPC procedures, and renders their failures for tRPC. */

import {
  type AnyTRPCRouter,
  initTRPC,
  TRPCError,
  type TRPCMutationProcedure,
  type TRPCQueryProcedure,
} from '@trpc/server'
import { nodeHTTPRequestHandler } from '@trpc/server/adapters/node-http'
import { ZodError, z } from 'zod'
import { askForBody, MAX_JSON_VALUES, mediaTypeOf, parseJson, readBody } from '../http/request.ts'
import { noStore, securityHeaders, toPairs } from '../http/response.ts'
import { reasons, ServiceError, toServiceError } from '../lib/errors.ts'
import { OTHER } from '../telemetry/metrics.ts'
import {
  type AccessStep,
  assertSameOrigin,
  type BodyCost,
  chargeRequest,
  limitBodyBytes,
  outlineOfBody,
  requestsOf,
} from './access.ts'
import type { Dependencies } from './dependencies.ts'
import { outputTransformer } from './envelope.ts'
import { errorHeaders, logFailure, toInvalidValue } from './errors.ts'
import {
  type AnyCaller,
  type CallContext,
  JsonBytes,
  type NamedOperation,
  type Operation,
  type OperationKind,
} from './operation.ts'
import { type Endpoint, type HttpCall, type Route, runOperation } from './pipeline.ts'
import { readTypedInput } from './typed-input.ts'

/** Holds the call in a single field, because tRPC copies the context's fields. */
export interface RpcContext {
  readonly call: CallContext<AnyCaller, Dependencies>
  /** The error in the request's body, which is reported only to authorized callers. */
  readonly badBody: ServiceError | undefined
  readonly accessSteps: readonly AccessStep[]
}

const t = initTRPC.context<RpcContext>().create({
  transformer: {
    input: { ...outputTransformer, deserialize: readTypedInput },
    output: outputTransformer,
  },
  isDev: false,
  // Pings idle streams, because some proxies close silent connections.
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
        // Included in the error, because the headers of a failed stream have already been sent.
        retryAfterSeconds: failure.details.retryAfterSeconds ?? null,
        ...failure.details.handover,
      },
    }
  },
})

/** Makes the input optional if it has no required fields. */
type InputOf<I extends z.ZodType> =
  Record<never, never> extends z.input<I> ? z.input<I> | undefined : z.input<I>

type ProcedureOf<O> = O extends {
  kind: infer Kind extends OperationKind
  input: infer I extends z.ZodType
  output: infer Out extends z.ZodType
}
  ? Kind extends 'query'
    ? TRPCQueryProcedure<{ input: InputOf<I>; output: z.output<Out>; meta: unknown }>
    : TRPCMutationProcedure<{ input: InputOf<I>; output: z.output<Out>; meta: unknown }>
  : never

export type Operations<D = never> = Readonly<Record<string, Readonly<Record<string, Operation<D>>>>>

type Procedures<T extends Operations> = { [M in keyof T]: { [V in keyof T[M]]: ProcedureOf<T[M][V]> } }

export function createRouter<T extends Operations>(operations: T) {
  const procedures = Object.entries(operations).map(([module, named]) => [
    module,
    Object.fromEntries(Object.entries(named).map(([name, one]) => [name, createProcedure(one)])),
  ])
  return t.router(Object.fromEntries(procedures) as unknown as Procedures<T>)
}

function createProcedure(operation: Operation) {
  const procedure = t.procedure
    .use(async ({ ctx, next }) => {
      if (operation.rpc === false) throw new TRPCError({ code: 'NOT_FOUND' })
      try {
        for (const step of ctx.accessSteps) await step({ context: ctx.call, auth: operation.auth })
      } catch (thrown) {
        rethrowForRpc(thrown)
      }
      if (ctx.badBody !== undefined) rethrowForRpc(ctx.badBody)
      return next()
    })
    // Treats a missing input as an empty object, as the REST API does.
    .input(z.preprocess((input) => (input === undefined ? {} : input), operation.input))
    .output(operation.output)
  const resolve = async (given: { ctx: RpcContext; input: unknown; signal: AbortSignal | undefined }) => {
    const { ctx, input, signal = neverAborted } = given
    try {
      const call = { context: ctx.call, input, signal, wantsEvents: false }
      const answer = await runOperation(operation as Operation<Dependencies>, call)
      return answer instanceof JsonBytes ? JSON.parse(answer.toString()) : answer
    } catch (thrown) {
      return rethrowForRpc(thrown)
    }
  }
  return operation.kind === 'query' ? procedure.query(resolve) : procedure.mutation(resolve)
}

const neverAborted = new AbortController().signal

/** Throws a failure as a TRPCError, so that tRPC sets the status and handles batches. */
function rethrowForRpc(thrown: unknown): never {
  const failure = toServiceError(thrown)
  throw new TRPCError({ code: reasons[failure.reason].rpc, message: failure.message, cause: failure })
}

/** Converts an error that tRPC throws, for example for invalid input or an unknown path. */
function toRpcFailure(error: TRPCError): ServiceError {
  if (error.cause instanceof ServiceError) return error.cause
  if (error.code === 'BAD_REQUEST' && error.cause instanceof ZodError) return toInvalidValue(error.cause)
  switch (error.code) {
    case 'INTERNAL_SERVER_ERROR':
      return toServiceError(error.cause)
    case 'NOT_FOUND':
      return new ServiceError('not_found', 'Procedure not found.')
    case 'METHOD_NOT_SUPPORTED':
      return new ServiceError(
        'method_not_allowed',
        'Wrong HTTP method for this procedure: use GET for queries and POST for mutations.',
      )
    case 'UNSUPPORTED_MEDIA_TYPE':
      return new ServiceError('unsupported_media_type', 'Content-Type: must be application/json')
    default:
      return new ServiceError('invalid_value', 'The request is not a valid tRPC call.')
  }
}

const MAX_CALLS_OF_BATCH = 10

/** Minimum body limit in bytes, which applies even if the operator sets a lower limit for chats. */
const MIN_BODY_LIMIT_BYTES = 1024 * 1024

/** Serves all paths under `/trpc`; runs the access steps for each procedure in a batch. */
export function createTrpcEndpoint(
  router: AnyTRPCRouter,
  operations: readonly NamedOperation[],
  accessSteps: readonly AccessStep[],
): Endpoint {
  const costs = new Map(operations.map(({ name, operation }) => [name, operation.request ?? {}]))
  const publicNames = new Set(
    operations.filter(({ operation }) => operation.auth.callers.length === 0).map(({ name }) => name),
  )

  const route: Route = {
    auth: undefined,
    check({ path, context }) {
      const [first = '', ...others] = listNames(path)
      const name = others.length > 0 ? 'batch' : costs.has(first) ? first : OTHER
      context.metadata.instrumentation.found(name, `/trpc/${name}`)
    },
    async parse(call) {
      const names = listNames(call.path)
      const isPublic = names.every((name) => publicNames.has(name))
      const isKnown = names.some((name) => costs.has(name))
      const cost = combineCosts(names.map((name) => costs.get(name) ?? {}))
      // Does not read the body of a request for an unknown procedure, because nothing checks its credentials.
      const body = isKnown ? await readCallBody(call, isPublic, cost).catch(toServiceError) : ''
      Object.assign(call.request, { body: body instanceof ServiceError ? '' : body })
      const badBody = body instanceof ServiceError ? body : undefined
      return { call: call.context, badBody, accessSteps } satisfies RpcContext
    },
    run(call) {
      void handleCall(router, call)
    },
  }
  return { find: ({ path }) => (/^\/trpc(\/|$)/.test(path) ? route : undefined) }
}

/** Uses the highest limit and cost among a batch's calls, because one body contains all their inputs. */
function combineCosts(costs: readonly BodyCost[]): BodyCost {
  const steps = costs.flatMap(({ bytesPerRequest }) => bytesPerRequest ?? [])
  return {
    maxJsonValues: Math.max(...costs.map(({ maxJsonValues }) => maxJsonValues ?? MAX_JSON_VALUES)),
    bytesPerRequest: steps.length === 0 ? undefined : Math.min(...steps),
  }
}

async function handleCall(router: AnyTRPCRouter, call: HttpCall): Promise<void> {
  const { request, response, context, path, deps } = call
  for (const [name, value] of toPairs([...securityHeaders, ...noStore])) response.setHeader(name, value)
  await call.delegateResponse()
  return nodeHTTPRequestHandler({
    router,
    req: request,
    res: response,
    path: path.slice(path.lastIndexOf('/') + 1),
    maxBatchSize: MAX_CALLS_OF_BATCH,
    createContext: async () => call.input as RpcContext,
    responseMeta: ({ errors: [error] }) => ({
      // If several calls in a batch set the same header, the last one takes precedence.
      headers: Object.fromEntries(
        toPairs([
          'Vary',
          'Authorization, Origin, trpc-accept, accept',
          ...context.headers,
          // tRPC sets no content type if it fails before it finds the procedure.
          ...(error === undefined
            ? []
            : ['Content-Type', 'application/json', ...errorHeaders(toRpcFailure(error))]),
        ]),
      ),
    }),
    onError: ({ error, path: name = '' }) =>
      logFailure(
        deps,
        { ...context.metadata.instrumentation.line, path: `/trpc/${name}` },
        toRpcFailure(error),
      ),
  })
}

function listNames(path: string): string[] {
  return path.slice('/trpc/'.length).split(',')
}

/** Reads the body as text. Returns an empty string if the caller is unknown and the call is not public. */
async function readCallBody(
  { context, request, response, deps }: HttpCall,
  isPublic: boolean,
  cost: BodyCost,
): Promise<string> {
  if (request.method !== 'POST') return ''
  const caller = isPublic ? undefined : await deps.authenticator.find(context.metadata)
  if (caller === undefined && !isPublic) return ''
  const { clock, config } = deps
  assertSameOrigin(context.metadata, config)
  if (mediaTypeOf(request) !== 'application/json') {
    throw new ServiceError('unsupported_media_type', 'Content-Type: must be application/json')
  }
  askForBody(request, response)
  const { limits, timings } = config
  const maxBytes = await limitBodyBytes(
    deps,
    request,
    caller,
    Math.max(limits.maxBodyBytes, MIN_BODY_LIMIT_BYTES),
  )
  const bytes = await readBody(
    request,
    { maxBytes, totalMs: timings.bodyMs, idleMs: timings.bodyIdleMs },
    clock,
  )
  const outline = outlineOfBody(bytes, cost)
  if (caller !== undefined) await chargeRequest(context, caller, requestsOf(bytes.length, outline, cost))
  if (bytes.length > 0) parseJson(bytes, cost.maxJsonValues, outline)
  return bytes.toString()
}
