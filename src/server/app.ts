/** The map of the server: every request gets an id, then the REST door, the typed door or a page answers it. */

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import express, { type ErrorRequestHandler, type Express, type Request, type Response } from 'express'
import { statusPageAssets } from '../artifacts/status-page.ts'
import { createTusEndpoint } from '../artifacts/tus.ts'
import { ambientOf, bearerOf, clientAddressOf, requestIdOf, tokenOf } from '../http/request.ts'
import { boundUnreadBody, noStore, type PageFile, securityHeaders, toPairs } from '../http/response.ts'
import { ServiceError, toServiceError } from '../lib/errors.ts'
import {
  errorHeaders,
  errorShapeOf,
  isAboutArtifacts,
  logFailure,
  renderError,
} from '../operations/http-call.ts'
import type { Arrival } from '../operations/operation.ts'
import { createRestDoor } from '../operations/rest.ts'
import { createTypedDoor } from '../operations/trpc.ts'
import type { Scraped } from '../telemetry/prometheus.ts'
import { RequestWatch } from '../telemetry/request-instrumentation.ts'
import { createConsoleFiles, createConsolePage } from '../web/console.ts'
import type { ConsoleAssets } from '../web/console-assets.ts'
import { docsPages } from '../web/docs.ts'
import { createEmbedPages, type Page } from '../web/widget.ts'
import type { WidgetAssets } from '../web/widget-assets.ts'
import { appRouter, listOperations, restOperations } from './api.ts'
import type { Deps } from './dependencies.ts'
import { assertMayReadMetrics } from './metrics-access.ts'

/** What the server is made of besides the service's own parts. */
export interface AppOptions {
  readonly deps: Deps
  /** The generated document, as JSON. */
  readonly openapi: Uint8Array
  readonly health: Health
  /** What `/metrics` tells. */
  readonly scrape: () => Promise<Scraped>
  readonly widget: WidgetAssets
  readonly console: ConsoleAssets
  /** Whether the service is going away: a connection that waited for a next request would hold it up. */
  readonly isDraining: () => boolean
}

/** What `/readyz` tells. */
export interface Health {
  /** Which parts are in order; `isReady` decides between 200 and 503. */
  read(): Promise<{ isReady: boolean; report: object }>
}

/** The server's behaviour. */
export interface App {
  /** For `http.createServer`. */
  readonly listener: RequestListener
  /** Ends every running answer: the service is going away. */
  readonly endStreams: () => void
}

/**
 * Puts the doors behind one listener. The REST door stands before Express, whose routing costs a third of a request there and
 * gives it nothing (ADR 0002).
 */
export function createApp(options: AppOptions): App {
  const { server } = options.deps.config
  const doors = [createRestDoor(options.deps, restOperations), createTusEndpoint(options.deps)]
  const arrivals = new WeakMap<IncomingMessage, Arrival>()
  const pages = createPages(options, (request) => arrivals.get(request) as Arrival)

  function listener(request: IncomingMessage, response: ServerResponse): void {
    if (options.isDraining()) response.shouldKeepAlive = false
    // Before and after an operation listens, too, an error of a request's own streams ends this request and not the process.
    request.on('error', () => {})
    response.on('error', () => response.destroy())
    toOriginForm(request)
    const bearer = bearerOf(request)
    const requestId = requestIdOf(request)
    const arrival: Arrival = {
      requestId,
      watch: new RequestWatch(options.deps, request, response, requestId),
      clientAddress: clientAddressOf(request, server.trustedProxies),
      bearer,
      token: bearer === undefined ? tokenOf(request) : undefined,
      ambient: bearer === undefined ? ambientOf(request) : undefined,
    }
    // The files of pages lie between what the doors answer.
    if (isAllowedHost(request, server.allowedHosts) && !statusPageAssets.has(request.url ?? '')) {
      for (const door of doors) if (door.answer(request, response, arrival)) return
    }
    arrivals.set(request, arrival)
    response.setHeader('X-Request-Id', arrival.requestId)
    boundUnreadBody(request, response)
    pages(request, response)
  }
  const endStreams = () => {
    for (const door of doors) door.endStreams()
  }
  return { listener, endStreams }
}

/** Everything but the REST door, in order. */
function createPages(options: AppOptions, arrivalOf: (request: IncomingMessage) => Arrival): Express {
  const { deps } = options
  const app = express()
  app.disable('x-powered-by').disable('etag').set('query parser', 'simple')
  app.enable('case sensitive routing').enable('strict routing')
  app.use((request, _response, next) => {
    if (isAllowedHost(request, deps.config.server.allowedHosts)) return next()
    throw new ServiceError('invalid_value', 'This Host is not served here.', { param: 'Host' })
  })
  // Before any body parser: it reads its bodies itself.
  app.use(
    '/trpc',
    setSecurityHeaders,
    createTypedDoor(deps, { router: appRouter, operations: listOperations() }, arrivalOf),
  )
  app.get(['/healthz', '/health'], setSecurityHeaders, (_request, response) => {
    response.json({ status: 'ok' })
  })
  app.get('/readyz', setSecurityHeaders, async (_request, response) => {
    const { isReady, report } = await options.health.read()
    response.status(isReady ? 200 : 503).json(report)
  })
  app.get('/metrics', setSecurityHeaders, async (request, response) => {
    await assertMayReadMetrics(deps, request, arrivalOf(request))
    const { mediaType, text } = await options.scrape()
    response.type(mediaType).send(text)
  })
  app.get('/openapi.json', setSecurityHeaders, (_request, response) => {
    response.type('application/json').send(options.openapi)
  })
  for (const [path, page] of pageFiles) app.get(path, (_request, response) => sendPage(response, page))
  const files = new Map([...createEmbedPages(deps, options.widget), ...createConsoleFiles(options.console)])
  for (const [path, page] of files) app.get(path, page)
  const isConsolePage = mountConsole(app, createConsolePage(deps, options.console))
  app.get('/', setSecurityHeaders, (_request, response) => response.redirect(302, '/console'))
  app.use((request) => {
    const isKnown = knownPaths.has(request.path) || files.has(request.path) || isConsolePage(request)
    throw isKnown ? refuseMethod(request.method) : refuseUnknown(request.path)
  })
  app.use(createErrorHandler(deps, arrivalOf))
  return app
}

/** Any address below `/console` is a page of it, for whoever can show one: the console's own script finds out which. */
function mountConsole(app: Express, page: Page): (request: Request) => boolean {
  const isConsolePage = (request: Request) =>
    /^\/console(\/(?!assets\/)|$)/.test(request.path) && request.accepts('html') !== false
  app.get(/^\/console(\/|$)/, (request, response, next) =>
    isConsolePage(request) ? page(request, response) : next(),
  )
  return isConsolePage
}

/** Express streams a file from disk; failures on the way go to the error handler. */
function sendPage(response: Response, { body, headers }: PageFile): void {
  response.set(headers)
  if ('text' in body) response.send(body.text)
  else response.sendFile(body.name, { root: body.folder, cacheControl: false, etag: false })
}

function setSecurityHeaders(_request: unknown, response: Response, next: () => void): void {
  for (const [name, value] of toPairs([...securityHeaders, ...noStore])) response.setHeader(name, value)
  next()
}

const pageFiles = new Map([...docsPages, ...statusPageAssets])
const knownPaths = new Set([
  '/',
  '/healthz',
  '/health',
  '/readyz',
  '/metrics',
  '/openapi.json',
  ...pageFiles.keys(),
])

function refuseUnknown(path: string): ServiceError {
  return new ServiceError('not_found', `There is nothing at ${path}.`)
}

function refuseMethod(method: string): ServiceError {
  const allow = ['GET', 'HEAD']
  return new ServiceError('method_not_allowed', `${method} is not possible here, only GET.`, { allow })
}

/** A client may also send the whole address; then that names the host, whatever `Host` says. RFC 9112, 3.2.2. */
function toOriginForm(request: IncomingMessage): void {
  const [, authority, target] = /^[a-z][\w+.-]*:\/\/([^/?#]*)(.*)$/i.exec(request.url ?? '') ?? []
  if (authority === undefined) return
  request.headers.host = authority
  request.url = target?.startsWith('/') ? target : `/${target}`
}

function isAllowedHost(request: IncomingMessage, allowed: readonly string[]): boolean {
  return allowed.length === 0 || allowed.includes((request.headers.host ?? '').toLowerCase())
}

function createErrorHandler(
  deps: Deps,
  arrivalOf: (request: IncomingMessage) => Arrival,
): ErrorRequestHandler {
  return (thrown, request, response, _next) => {
    const failure = toFailure(thrown)
    logFailure(deps, { ...arrivalOf(request).watch.line, path: request.path }, failure)
    if (response.headersSent) return void response.destroy()
    setSecurityHeaders(request, response, () => {})
    if (isAboutArtifacts(request.path)) response.setHeader('Protocol-Version', '2')
    for (const [name, value] of toPairs(errorHeaders(failure))) response.setHeader(name, value)
    response.status(failure.status).json(renderError(failure, errorShapeOf(request.path)))
  }
}

/** Express refuses a path it cannot decode with an error of its own. */
function toFailure(thrown: unknown): ServiceError {
  const status = (thrown as { status?: unknown } | null)?.status
  if (status === 400) return new ServiceError('invalid_value', 'The path is not validly percent-encoded.')
  return toServiceError(thrown)
}
