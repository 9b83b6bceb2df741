/** The routes that are not operations: health, metrics, the OpenAPI document, and the pages for browsers. */
import { watchPages } from '../artifacts/status-page.ts'
import { noStore } from '../http/response.ts'
import { ServiceError } from '../lib/errors.ts'
import type { AnyCaller } from '../operations/operation.ts'
import type { Endpoint, HttpCall, Route } from '../operations/pipeline.ts'
import type { Scraped } from '../telemetry/prometheus.ts'
import { type ConsoleAssets, createConsoleFiles, createConsolePage } from '../web/console.ts'
import { docsPages } from '../web/docs.ts'
import { createFilePage, type Page } from '../web/page.ts'
import { createEmbedPages, type WidgetAssets } from '../web/widget.ts'
import type { Deps } from './dependencies.ts'
import { assertMayReadMetrics } from './metrics.ts'

export interface PageOptions {
  readonly deps: Deps
  readonly openapi: Uint8Array
  readonly health: Health
  readonly scrape: () => Promise<Scraped>
  readonly widget: WidgetAssets
  readonly console: ConsoleAssets
}

export interface Health {
  /** Reads the state of the service's parts; `isReady` decides between 200 and 503. */
  read(): Promise<{ isReady: boolean; report: object }>
}

type PageCall = HttpCall<AnyCaller, Deps>
type PageRoute = Route<AnyCaller, Deps>

export function createPageEndpoint(options: PageOptions): Endpoint<AnyCaller, Deps> {
  const { deps, widget, console } = options
  const files = [...docsPages, ...watchPages].map(([path, file]) => [path, createFilePage(file)] as const)
  const pages = [...files, ...createEmbedPages(deps, widget), ...createConsoleFiles(console)]
  const routes = new Map<string, PageRoute>([
    ...createServiceRoutes(options),
    ...pages.map(([path, page]) => [path, toRoute(page)] as const),
  ])
  const consoleRoute = toRoute(createConsolePage(deps, console))

  return {
    find(call) {
      const route = routes.get(call.path) ?? (isConsolePage(call) ? consoleRoute : undefined)
      const { method = '' } = call.request
      if (route === undefined || method === 'GET' || method === 'HEAD') return route
      const allow = ['GET', 'HEAD']
      throw new ServiceError('method_not_allowed', `${method} is not possible here, only GET.`, { allow })
    },
  }
}

function createServiceRoutes(options: PageOptions): [path: string, route: PageRoute][] {
  const health = publicRoute((call) => writeJson(call, 200, { status: 'ok' }))
  return [
    ['/', publicRoute((call) => call.writeEmpty(302, ['Location', '/console']))],
    ['/healthz', health],
    ['/health', health],
    [
      '/readyz',
      publicRoute(async (call) => {
        const { isReady, report } = await options.health.read()
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
  ]
}

function publicRoute(run: PageRoute['run']): PageRoute {
  return { auth: { callers: [] }, run }
}

function writeJson(call: PageCall, status: number, body: object): void {
  call.writeJson(status, [Buffer.from(JSON.stringify(body))])
}

/** A page writes its own headers. */
function toRoute(page: Page): PageRoute {
  return publicRoute((call) => {
    call.handOver()
    return page(call.request, call.response)
  })
}

/** Every path below `/console` is a page of it for clients that accept HTML; its script shows what does not exist. */
function isConsolePage({ path, request: { headers } }: PageCall): boolean {
  if (!/^\/console(\/(?!assets\/)|$)/.test(path)) return false
  const { accept } = headers
  return accept === undefined || /(^|[,\s])(text\/html|text\/\*|\*\/\*)/i.test(accept)
}
