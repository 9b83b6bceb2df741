/** Builds the app: the steps of every request, and the routes that are not operations, such as pages. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { definitionSchema } from '../agents/definition.ts'
import { checkPageOrigin } from '../agents/page-origin.ts'
import { statusPageAssets } from '../artifacts/status-page.ts'
import { uploadEndpoint } from '../artifacts/tus.ts'
import { designFiles } from '../design/design.ts'
import {
  assertSingleHeaders,
  bearerOf,
  clientAddressOf,
  ignoredForwardedForOf,
  implicitCredentialsOf,
  requestIdOf,
  tokenOf,
  toOriginForm,
} from '../http/request.ts'
import { noStore } from '../http/response.ts'
import { ServiceError } from '../lib/errors.ts'
import {
  type AccessStep,
  authenticate,
  checkPermission,
  checkSameOrigin,
  foreignOriginOf,
  limitRate,
} from '../operations/access.ts'
import type { AnyCaller, RequestMetadata } from '../operations/operation.ts'
import {
  type Endpoint,
  HttpCall,
  parseInput,
  type Route,
  routeTo,
  runRoute,
  runSteps,
  type Step,
  validateInput,
  writeResult,
} from '../operations/pipeline.ts'
import { createRestEndpoint } from '../operations/rest.ts'
import { createTrpcEndpoint } from '../operations/trpc.ts'
import type { Scraped } from '../telemetry/prometheus.ts'
import { RequestInstrumentation } from '../telemetry/request-instrumentation.ts'
import { checkVisitor } from '../visitors/access.ts'
import { type ConsoleAssets, createConsoleFiles, createConsolePage } from '../web/console.ts'
import { docsPages, examplePages, markdownPages } from '../web/docs.ts'
import type { DocumentationFiles } from '../web/documentation.ts'
import { createFilePage, type Page } from '../web/page.ts'
import { createEmbedPages } from '../web/widget.ts'
import type { WidgetAssets } from '../web/widget-files.ts'
import { appRouter, listOperations, restOperations } from './api.ts'
import type { Deps } from './dependencies.ts'
import { createHealth } from './health.ts'
import { assertMayReadMetrics } from './metrics.ts'

export interface AppOptions {
  readonly deps: Deps
  readonly openapi: Uint8Array
  readonly scrape: () => Promise<Scraped>
  readonly widget: WidgetAssets
  readonly console: ConsoleAssets
  readonly documentation: DocumentationFiles
}

export interface App {
  readonly listener: RequestListener
  /** Makes each response close its connection, and makes `/readyz` report that the server is draining. */
  beginDraining(): void
  abortCalls(): void
}

export function createApp(options: AppOptions): App {
  const { deps } = options
  let isDraining = false
  const openCalls = new OpenCalls()
  const checkOrigin: AccessStep = (call) => checkPageOrigin(call, deps.agents)
  const checkCallVisitor: AccessStep = (call) => checkVisitor(call, deps)
  const access: AccessStep[] = [authenticate, limitRate, checkSameOrigin, checkPermission, checkOrigin]
  access.push(checkCallVisitor)
  const endpoints = [
    createPageEndpoint(options, () => isDraining),
    createRestEndpoint(restOperations),
    uploadEndpoint,
    createTrpcEndpoint(appRouter, listOperations(), access),
  ]
  /** All steps except `identifyRequest`, which runs first. */
  const steps: readonly Step<Deps>[] = [
    ({ request }) => assertSingleHeaders(request),
    checkHost,
    routeTo(endpoints),
    ...access,
    parseInput,
    validateInput,
    runRoute,
    writeResult,
  ]

  return {
    listener(request, response) {
      if (isDraining) response.shouldKeepAlive = false
      // An unhandled error event would crash the process.
      request.on('error', ignore)
      response.on('error', destroyResponse)
      const metadata = identifyRequest(deps, request, response)
      const call = new HttpCall(deps, request, response, metadata)
      openCalls.add(call)
      // One listener for all modules, because each listener costs CPU time in every request.
      response.on('close', () => {
        metadata.instrumentation.end()
        openCalls.remove(call)
        call.close()
      })
      void runSteps(call, steps)
    },
    beginDraining() {
      isDraining = true
      for (const { response } of openCalls.list()) response.shouldKeepAlive = false
    },
    abortCalls() {
      const reason = new ServiceError('service_unavailable', 'The server is shutting down.')
      for (const call of openCalls.list()) call.abort(reason)
    },
  }
}

function ignore(): void {}

function destroyResponse(this: ServerResponse): void {
  this.destroy()
}

/**
 * Holds the calls in progress, keyed by connection. A Set would retain finished calls, because V8 rebuilds a
 * set after some additions and deletions, and the old copy keeps its calls until a full garbage collection.
 */
class OpenCalls {
  private readonly bySocket = new Map<Socket, HttpCall[]>()

  add(call: HttpCall): void {
    const { socket } = call.request
    const calls = this.bySocket.get(socket) ?? this.addSocket(socket)
    calls.push(call)
  }

  remove(call: HttpCall): void {
    const calls = this.bySocket.get(call.request.socket)
    if (calls === undefined) return
    // The newest call usually ends first; `splice` would allocate a list.
    if (calls.at(-1) === call) calls.pop()
    else calls.splice(calls.indexOf(call), 1)
  }

  list(): HttpCall[] {
    return [...this.bySocket.values()].flat()
  }

  private addSocket(socket: Socket): HttpCall[] {
    const calls: HttpCall[] = []
    this.bySocket.set(socket, calls)
    socket.once('close', () => this.bySocket.delete(socket))
    return calls
  }
}

function identifyRequest(deps: Deps, request: IncomingMessage, response: ServerResponse): RequestMetadata {
  toOriginForm(request)
  const bearer = bearerOf(request)
  const requestId = requestIdOf(request)
  const { trustedProxies } = deps.config.server
  return {
    requestId,
    headers: request.headers,
    instrumentation: new RequestInstrumentation(deps, request, response, requestId),
    clientAddress: clientAddressOf(request, trustedProxies),
    ignoredForwardedFor: ignoredForwardedForOf(request, trustedProxies),
    bearer,
    token: bearer === undefined ? tokenOf(request) : undefined,
    implicit: bearer === undefined ? implicitCredentialsOf(request) : undefined,
    foreignOrigin: foreignOriginOf(request.headers, deps.config.server.publicUrl),
  }
}

/** Rejects unknown hosts, to protect against DNS rebinding. */
function checkHost({ request, deps }: HttpCall): void {
  const { allowedHosts } = deps.config.server
  if (allowedHosts.length === 0 || allowedHosts.includes((request.headers.host ?? '').toLowerCase())) return
  throw new ServiceError('invalid_value', 'Unknown Host header.', { param: 'Host' })
}

type PageCall = HttpCall<AnyCaller, Deps>
type PageRoute = Route<AnyCaller, Deps>

function createPageEndpoint(options: AppOptions, isDraining: () => boolean): Endpoint<AnyCaller, Deps> {
  const { deps, widget, console, documentation } = options
  const docs = [...docsPages, ...documentation, ...markdownPages, ...examplePages]
  const files = [...designFiles, ...docs, ...statusPageAssets].map(
    ([path, file]) => [path, createFilePage(file)] as const,
  )
  const pages = [...files, ...createEmbedPages(deps, widget), ...createConsoleFiles(console)]
  const routes = new Map<string, PageRoute>([
    ...createServiceRoutes(options, isDraining),
    ...pages.map(([path, page]) => [path, toRoute(page)] as const),
  ])
  const consoleRoute = toRoute(createConsolePage(deps, console))

  return {
    find(call) {
      const route = routes.get(call.path) ?? (isConsolePage(call) ? consoleRoute : undefined)
      const { method = '' } = call.request
      if (route === undefined || method === 'GET' || method === 'HEAD') return route
      const allow = ['GET', 'HEAD']
      throw new ServiceError('method_not_allowed', `${method} is not allowed for this path; use GET.`, {
        allow,
      })
    },
  }
}

function createServiceRoutes(
  options: AppOptions,
  isDraining: () => boolean,
): [path: string, route: PageRoute][] {
  const readHealth = createHealth(options.deps)
  const health = publicRoute((call) => writeJson(call, 200, { status: 'ok' }))
  return [
    ['/', publicRoute((call) => call.writeEmpty(302, ['Location', '/console']))],
    ['/healthz', health],
    ['/health', health],
    [
      '/readyz',
      publicRoute(async (call) => {
        const { isReady, report } = await readHealth(isDraining())
        writeJson(call, isReady ? 200 : 503, report)
      }),
    ],
    [
      '/metrics',
      publicRoute(async (call) => {
        await assertMayReadMetrics(call)
        const { mediaType, text } = await options.scrape()
        call.writeBody(200, [Buffer.from(text)], ['Content-Type', mediaType, ...noStore])
      }),
    ],
    ['/openapi.json', publicRoute((call) => call.writeJson(200, [options.openapi]))],
    ['/agent-definition.schema.json', publicRoute((call) => writeJson(call, 200, definitionSchema))],
  ]
}

function publicRoute(run: PageRoute['run']): PageRoute {
  return { auth: { callers: [] }, run }
}

function writeJson(call: PageCall, status: number, body: object): void {
  call.writeJson(status, [Buffer.from(JSON.stringify(body))])
}

/** Converts a page to a route; pages write their own headers. */
function toRoute(page: Page): PageRoute {
  return publicRoute(async (call) => {
    await call.delegateResponse()
    return page(call.request, call.response)
  })
}

/**
 * Serves the console for every path below `/console` if the client accepts HTML; its script handles unknown
 * paths.
 */
function isConsolePage({ path, request: { headers } }: PageCall): boolean {
  if (!/^\/console(\/(?!assets\/)|$)/.test(path)) return false
  const { accept } = headers
  return accept === undefined || /(^|[,\s])(text\/html|text\/\*|\*\/\*)/i.test(accept)
}
