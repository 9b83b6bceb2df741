/** The app: the pipeline of steps that every request passes, whether it is for REST, tRPC, an upload or a page. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { uploadEndpoint } from '../artifacts/tus.ts'
import {
  bearerOf,
  clientAddressOf,
  implicitCredentialsOf,
  requestIdOf,
  tokenOf,
  toOriginForm,
} from '../http/request.ts'
import { ServiceError } from '../lib/errors.ts'
import { authenticate, checkPermission } from '../operations/authorize.ts'
import type { RequestMetadata } from '../operations/operation.ts'
import {
  HttpCall,
  parseInput,
  routeTo,
  runRoute,
  runSteps,
  type Step,
  validateInput,
  writeResult,
} from '../operations/pipeline.ts'
import { limitRate } from '../operations/rate-limit.ts'
import { createRestEndpoint } from '../operations/rest.ts'
import { checkSameOrigin } from '../operations/same-origin.ts'
import { createTrpcEndpoint } from '../operations/trpc.ts'
import { RequestWatch } from '../telemetry/request-instrumentation.ts'
import { appRouter, listOperations, restOperations } from './api.ts'
import type { Deps } from './dependencies.ts'
import { createPageEndpoint, type PageOptions } from './pages.ts'

export interface AppOptions extends PageOptions {
  /** While the service shuts down, connections are closed after their response. */
  readonly isDraining: () => boolean
}

export interface App {
  readonly listener: RequestListener
  readonly abortCalls: () => void
}

export function createApp(options: AppOptions): App {
  const { deps } = options
  const active = new Set<AbortController>()
  const access = [authenticate, limitRate, checkSameOrigin, checkPermission] as const
  const endpoints = [
    createPageEndpoint(options),
    createRestEndpoint(restOperations),
    uploadEndpoint,
    // Each procedure of a batch passes the access steps itself.
    createTrpcEndpoint({ router: appRouter, operations: listOperations() }, access),
  ]
  /** What happens to every request after `identifyRequest`, in this order. */
  const steps: readonly Step<Deps>[] = [
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
      if (options.isDraining()) response.shouldKeepAlive = false
      // An error of a request's own streams ends this request, never the process.
      request.on('error', () => {})
      response.on('error', () => response.destroy())
      const metadata = identifyRequest(deps, request, response)
      void runSteps(new HttpCall(deps, request, response, metadata, active), steps)
    },
    abortCalls() {
      const reason = new ServiceError('service_unavailable', 'The service is shutting down.')
      for (const controller of active) controller.abort(reason)
    },
  }
}

function identifyRequest(deps: Deps, request: IncomingMessage, response: ServerResponse): RequestMetadata {
  toOriginForm(request)
  const bearer = bearerOf(request)
  const requestId = requestIdOf(request)
  return {
    requestId,
    instrumentation: new RequestWatch(deps, request, response, requestId),
    clientAddress: clientAddressOf(request, deps.config.server.trustedProxies),
    bearer,
    token: bearer === undefined ? tokenOf(request) : undefined,
    implicit: bearer === undefined ? implicitCredentialsOf(request) : undefined,
  }
}

/** Step: rejects a host that the operator does not serve, which protects against DNS rebinding. */
function checkHost({ request, deps }: HttpCall): void {
  const { allowedHosts } = deps.config.server
  if (allowedHosts.length === 0 || allowedHosts.includes((request.headers.host ?? '').toLowerCase())) return
  throw new ServiceError('invalid_value', 'This Host is not served here.', { param: 'Host' })
}
