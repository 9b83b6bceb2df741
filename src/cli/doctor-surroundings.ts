/** The checks of `parley doctor` that look at what the service runs on and talks to: Node, the backend, the port. */
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { BackendFailure } from '../chat/backend.ts'
import { createGateway } from '../chat/backends/create.ts'
import type { Config } from '../config.ts'
import { listen } from '../http-server.ts'
import { type Finding, fail, ok, reasonOf, warn } from './finding.ts'

const NODE_MAJOR = 24
const MODEL_LIST_MS = 5_000
const HEALTH_MS = 2_000

export function checkNode(version: string): Finding {
  if (Number.parseInt(version, 10) >= NODE_MAJOR) return ok('node', version)
  return fail('node', `${version} is too old: ${NODE_MAJOR} is needed; \`npm run parley\` uses the right one`)
}

/** Asks for the model list, as a start does. */
export async function checkBackend({ backend, timings }: Config): Promise<Finding> {
  const check = 'backend'
  if (backend.kind === 'mock') return ok(check, 'mock; set PARLEY_BACKEND=gateway for a language model')
  const gateway = await createGateway(backend, timings, MODEL_LIST_MS)
  try {
    const models = await gateway.listModels(new AbortController().signal)
    if (models.length > 0) return ok(check, `${backend.url} lists ${models.length} models`)
    return warn(check, `${backend.url} lists no models; give it one`)
  } catch (error) {
    return toFinding(check, backend.url, error)
  } finally {
    await gateway.close()
  }
}

function toFinding(check: string, url: string, error: unknown): Finding {
  if (!(error instanceof BackendFailure)) throw error
  const { status } = error
  if (status === 401 || status === 403) {
    return fail(check, `${url} answered ${status}; set PARLEY_GATEWAY_API_KEY to a key it accepts`)
  }
  // Some gateways have none; ids are handed on as they are then.
  if (status === 404) return warn(check, `${url}/models is not there; check PARLEY_GATEWAY_URL`)
  return fail(
    check,
    `${url} gave no model list (${error.message}); check PARLEY_GATEWAY_URL and that it runs`,
  )
}

/** The port is free, or a Parley answers there. */
export async function checkPort({ host, port, allowedHosts }: Config['server']): Promise<Finding> {
  const check = 'port'
  if (port === 0) return ok(check, 'any free one (PORT=0)')
  try {
    const server = await listen(() => {}, host, port)
    await new Promise((resolve) => server.close(resolve).closeAllConnections())
    return ok(check, `${port} on ${host} is free`)
  } catch (error) {
    const url = `http://${toAuthority(host)}:${port}`
    return (await isParley(url, allowedHosts))
      ? ok(check, `a Parley answers on ${url}`)
      : fail(check, reasonOf(error))
  }
}

/** Asks under a name the server answers to; `fetch` would not let us choose it. */
async function isParley(url: string, [host]: readonly string[]): Promise<boolean> {
  const asked = get(`${url}/healthz`, {
    agent: false,
    signal: AbortSignal.timeout(HEALTH_MS),
    ...(host !== undefined && { headers: { host } }),
  })
  // One that comes after the head has nobody else to hear it.
  asked.on('error', () => {})
  try {
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    return response.statusCode === 200 && (await text(response)) === '{"status":"ok"}'
  } catch {
    return false
  } finally {
    asked.destroy()
  }
}

/** The address of this machine where a server that listens on `host` answers. */
function toAuthority(host: string): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return reachable.includes(':') ? `[${reachable}]` : reachable
}
