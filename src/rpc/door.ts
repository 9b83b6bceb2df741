/** The typed door: tRPC, with bodies read as the REST door reads them, after the key and within the limits. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createExpressMiddleware } from '@trpc/server/adapters/express'
import type { RequestHandler } from 'express'
import type { Deps } from '../deps.ts'
import { ServiceError, toServiceError } from '../errors.ts'
import { OTHER } from '../observability/model-meters.ts'
import { MAX_JSON_VALUES, mediaTypeOf, parseJson, readBody } from '../rest/bodies.ts'
import { errorHeaders } from '../rest/errors.ts'
import { askForBody, toPairs } from '../rest/headers.ts'
import { findCaller } from './authorize.ts'
import { type Arrival, CallContext } from './context.ts'
import { largestBodyOf } from './largest-body.ts'
import { logFailure } from './log-failure.ts'
import { assertOwnPage } from './own-page.ts'
import { appRouter, listOperations } from './router.ts'
import { type RpcContext, toRpcFailure } from './trpc.ts'

/** The most calls in one batch. */
const MAX_BATCH = 10
/** The least that a body may hold, however small the operator makes a chat's. */
const MAX_BYTES_AT_LEAST = 1024 * 1024

/** The door, to be mounted before any body parser; `arrivalOf` tells what is known of a request. */
export function createTypedDoor(
  deps: Deps,
  arrivalOf: (request: IncomingMessage) => Arrival,
): RequestHandler {
  const contexts = new WeakMap<IncomingMessage, RpcContext>()
  const answer = createExpressMiddleware({
    router: appRouter,
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
    const call = new CallContext(deps, arrivalOf(request))
    const name = nameOf(request)
    call.arrival.watch.found(name, `/trpc/${name}`)
    const body = await readCallBody(call, request, response).catch(toServiceError)
    contexts.set(request, { call, badBody: body instanceof ServiceError ? body : undefined })
    request.body = body instanceof ServiceError ? '' : body
    return answer(request, response, next)
  }
}

const namesForEverybody = new Set(
  listOperations()
    .filter(({ operation }) => operation.wire.callers.length === 0)
    .map(({ name }) => name),
)

const operations = new Map(listOperations().map(({ name, operation }) => [name, operation]))

/** What a request asks for, in a word of the table: several calls in one are a batch. */
function nameOf(request: IncomingMessage): string {
  const [name = '', ...others] = listNames(request)
  if (others.length > 0) return 'batch'
  return operations.has(name) ? name : OTHER
}

function listNames({ url = '' }: IncomingMessage): string[] {
  const [path = ''] = url.split('?')
  return path.slice(1).split(',')
}

/** Whether the call, or each of a batch of calls, asks nobody who they are. */
function isForEverybody(request: IncomingMessage): boolean {
  return listNames(request).every((name) => namesForEverybody.has(name))
}

/** The most values of a call, or of a batch that holds such a call. */
function maxJsonValuesOf(request: IncomingMessage): number {
  const limits = listNames(request).map((name) => operations.get(name)?.wire.maxJsonValues)
  return Math.max(...limits.map((limit) => limit ?? MAX_JSON_VALUES))
}

/**
 * The body as the text tRPC parses; empty for an unknown caller, whom the procedures refuse without it.
 * @throws ServiceError as the REST door does for a body that is too large, too slow or no JSON.
 */
async function readCallBody(
  call: CallContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<string> {
  if (request.method !== 'POST') return ''
  const caller = isForEverybody(request) ? undefined : await findCaller(call)
  if (caller === undefined && !isForEverybody(request)) return ''
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
  if (bytes.length > 0) parseJson(bytes, maxJsonValuesOf(request))
  return bytes.toString()
}
