/** The REST door: finds the operation, admits the caller, gathers the input, runs it, writes the answer. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { z } from 'zod'
import type { Deps } from '../deps.ts'
import { type ServiceError, toServiceError } from '../errors.ts'
import type { Caller } from '../keys/schema.ts'
import { Download, EventStream, JsonBytes, Page } from '../rpc/answer.ts'
import { authorize, countStray } from '../rpc/authorize.ts'
import type { Arrival } from '../rpc/context.ts'
import { toInvalidValue } from '../rpc/invalid-value.ts'
import type { Call } from '../rpc/op.ts'
import { CallsUnderWay, HttpCall } from './call.ts'
import { writeDownload } from './download.ts'
import { errorHeaders, renderError } from './errors.ts'
import { askForBody, isOpenToOrigins } from './headers.ts'
import { gatherInput } from './input.ts'
import { assertAcceptable, receiveUpload } from './multipart.ts'
import { pageHeaders, pageSecurityHeaders } from './pages.ts'
import { createRouteTable, type Match, type RestOperation } from './routes.ts'
import { findSizeLimit } from './size-limit.ts'
import { DONE, eventStreamHeaders, writeEvents } from './sse.ts'

/** A way in for requests of some paths. */
export interface Door {
  /** Answers a request if its path is one of these; false leaves it to somebody else. */
  answer(request: IncomingMessage, response: ServerResponse, arrival: Arrival): boolean
  /** Ends every answer under way: the service is going away. */
  endStreams(): void
}

/** The door in front of these operations. */
export function createRestDoor(deps: Deps, operations: readonly RestOperation[]): Door {
  const routes = createRouteTable(operations)
  const underWay = new CallsUnderWay()

  async function findOperation({ request, path, context }: RestCall): Promise<Match> {
    try {
      return routes.match(request.method as string, path)
    } catch (failure) {
      await countStray(context)
      throw failure
    }
  }

  async function answer(call: RestCall): Promise<void> {
    const { request, context } = call
    call.assertShortTarget()
    if (request.method === 'OPTIONS' && isOpenToOrigins(call.path)) return call.writePreflight()
    const { operation, params } = await findOperation(call)
    context.arrival.watch.found(operation.name, operation.http.path)
    call.errorShape = operation.wire.errors
    call.failurePage = operation.wire.page
    if (operation.wire.pathFirst !== undefined) parseInput(operation.wire.pathFirst, params)
    await authorize(context, operation.wire)
    if (operation.wire.body === 'upload') return answerUpload(call, operation)
    askForBody(request, call.response)
    const caller = operation.wire.callers.length === 0 ? undefined : context.caller
    return run(call, operation, await gatherInput(request, operation, params, deps, caller))
  }

  /** The file lasts as long as the call, unless the operation keeps it. */
  async function answerUpload(call: RestCall, operation: RestOperation): Promise<void> {
    const { config, fileBlobs: blobs } = deps
    const { request, signal, context } = call
    const maxBytes = operation.wire.maxBodyBytes?.(config) ?? config.limits.maxFileBytes
    const limit = await findSizeLimit(deps, context.caller.tenantId, maxBytes)
    assertAcceptable(request, limit)
    askForBody(request, call.response)
    const options = { blobs, limit, idleMs: config.timings.bodyIdleMs, signal }
    await receiveUpload(request, options, (fields) => run(call, operation, fields))
  }

  async function run(call: RestCall, operation: RestOperation, input: unknown): Promise<void> {
    call.input = parseInput(operation.input, input)
    const result = await operation.run(call)
    if (result instanceof EventStream) return call.writeStream(result)
    if (result instanceof Download) return call.writeDownload(result)
    if (result instanceof Page) return call.writePage(200, result)
    call.writeAnswer(operation.wire.status ?? 200, result)
  }

  return {
    answer(request, response, arrival) {
      const path = (request.url ?? '/').split('?', 1)[0] as string
      if (!/^\/(v1|artifacts|capabilities)(\/|$)/.test(path)) return false
      const call = new RestCall(deps, request, response, arrival, path, underWay)
      answer(call).catch((thrown) => call.writeFailure(toServiceError(thrown)))
      return true
    },
    endStreams: () => underWay.endAll(),
  }
}

/** @throws ServiceError `invalid_value` */
function parseInput(schema: z.ZodType, input: unknown): unknown {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  throw toInvalidValue(parsed.error)
}

/** The call that an operation runs, and the ways to write what comes of it. */
class RestCall extends HttpCall<Caller> implements Call<Caller, unknown> {
  input: unknown
  /** How a failure is told where a page was asked for. */
  failurePage: ((failure: ServiceError) => Page) | undefined

  get wantsEvents(): boolean {
    const { method, headers } = this.request
    // Of a stream that never ends there would be nothing to send but its head.
    return method !== 'HEAD' && headers.accept?.includes('text/event-stream') === true
  }

  writeAnswer(status: number, result: unknown): void {
    const body = result instanceof JsonBytes ? result.pieces : [Buffer.from(JSON.stringify(result))]
    if (!this.response.destroyed) this.writeJson(status, body)
  }

  writePage(status: number, { html }: Page, headers: readonly string[] = []): void {
    if (this.response.destroyed) return
    this.writeBody(status, [Buffer.from(html)], [...pageHeaders, ...headers], pageSecurityHeaders)
  }

  override writeFailure(failure: ServiceError): void {
    const { failurePage, response } = this
    if (failurePage === undefined || response.headersSent) super.writeFailure(failure)
    else this.writePage(failure.status, failurePage(this.logged(failure)), errorHeaders(failure))
  }

  async writeStream({ events, tellFailure }: EventStream): Promise<void> {
    await writeEvents(this.response, {
      events,
      writeHead: () => this.writeHead(200, eventStreamHeaders),
      end: tellFailure === undefined ? DONE : '',
      renderFailure: (thrown) => (tellFailure ?? renderErrorFrame)(this.logged(toServiceError(thrown))),
      heartbeatMs: this.deps.config.timings.heartbeatMs,
    })
  }

  writeDownload({ content }: Download): Promise<void> {
    const { request, response, context, signal } = this
    const writeHead = (status: number, headers: readonly string[], security: readonly string[]) =>
      void this.writeHead(status, headers, security)
    return writeDownload(content, { request, response, context, signal, writeHead })
  }
}

/** Decision: 7 (After the first byte a failure). */
function renderErrorFrame(failure: ServiceError): Uint8Array {
  return Buffer.from(`data: ${JSON.stringify(renderError(failure, 'openai'))}\n\n`)
}
