/** The checks of `parley doctor` on what the service runs on and connects to: Node, providers, port, conversion programs, tools. */
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Config, LocalModelConfig, McpServerConfig } from '../../config/config.ts'
import { createConverter } from '../../conversion/conversion.ts'
import { type Programs, readVersion } from '../../conversion/programs.ts'
import { listen } from '../../http/server.ts'
import { systemClock } from '../../lib/clock.ts'
import { findNodeTrouble } from '../../lib/node-version.ts'
import { createRemote, importLocalModels, type RemoteConfig } from '../../providers/create.ts'
import { BackendFailure } from '../../providers/provider.ts'
import { type Diagnostic, fail, failOnStartupError, ok, reasonOf, warn } from './diagnostic.ts'

const MODEL_LIST_MS = 5_000
const HEALTH_MS = 2_000

export function checkNode(version: string): Diagnostic {
  const trouble = findNodeTrouble(version)
  return trouble === undefined ? ok('node', version) : fail('node', trouble)
}

export async function checkBackends({ providers, timings }: Config): Promise<Diagnostic[]> {
  const isAlone = providers.length === 1
  const diagnostics = await Promise.all(
    providers.map(async (provider) => {
      const check = isAlone ? 'backend' : `backend ${provider.name}`
      if (provider.kind === 'local-model') return checkModelFile(check, provider)
      if (provider.kind !== 'mock') return checkRemote(check, provider, timings)
      return ok(check, isAlone ? 'mock; set PARLEY_BACKEND=gateway or local for a language model' : 'mock')
    }),
  )
  return diagnostics.flat()
}

async function checkModelFile(check: string, provider: LocalModelConfig): Promise<Diagnostic[]> {
  const { checkLocalModel } = await importLocalModels()
  return failOnStartupError(check, async () => {
    await checkLocalModel(provider)
    return [ok(check, `${provider.path} can be loaded`)]
  })
}

async function checkRemote(
  check: string,
  provider: RemoteConfig,
  timings: Config['timings'],
): Promise<Diagnostic> {
  const { url } = provider
  const backend = await createRemote(provider, timings, MODEL_LIST_MS)
  try {
    const models = await backend.listModels(new AbortController().signal)
    if (models.length > 0) return ok(check, `${url} lists ${models.length} models`)
    const advice = provider.kind === 'local' ? 'give it one, such as `ollama pull llama3.2`' : 'give it one'
    return warn(check, `${url} lists no models; ${advice}`)
  } catch (error) {
    return toDiagnostic(check, provider, error)
  } finally {
    await backend.close()
  }
}

function toDiagnostic(check: string, provider: RemoteConfig, error: unknown): Diagnostic {
  if (!(error instanceof BackendFailure)) throw error
  const { kind, url } = provider
  const { status } = error
  if (kind === 'local') {
    const setting = toSetting(provider, 'PARLEY_LOCAL_URL', 'url')
    const said = status === undefined ? error.message : `${url} answered ${status}`
    return fail(check, `${said}; check ${setting}`)
  }
  if (status === 401 || status === 403) {
    const setting = toSetting(provider, 'PARLEY_GATEWAY_API_KEY', 'api_key')
    return fail(check, `${url} answered ${status}; set ${setting} to a key it accepts`)
  }
  const setting = toSetting(provider, 'PARLEY_GATEWAY_URL', 'url')
  // Some gateways have no model list; model ids are then passed on unchanged.
  if (status === 404) return warn(check, `${url}/models is not there; check ${setting}`)
  return fail(check, `${url} gave no model list (${error.message}); check ${setting} and that it runs`)
}

/** The setting of a provider. The environment's provider is named like its kind, but the file may use that name too. */
function toSetting({ kind, name }: RemoteConfig, variable: string, key: string): string {
  const inFile = `providers.${name}.${key} in the file of PARLEY_CONFIG`
  return name === kind ? `${variable} (or ${inFile})` : inFile
}

export async function checkPort({ host, port, allowedHosts }: Config['server']): Promise<Diagnostic> {
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

/** Sends an allowed Host header, which `fetch` cannot set. */
async function isParley(url: string, [host]: readonly string[]): Promise<boolean> {
  const asked = get(`${url}/healthz`, {
    agent: false,
    signal: AbortSignal.timeout(HEALTH_MS),
    ...(host !== undefined && { headers: { host } }),
  })
  // An error after the response head would be uncaught.
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

/** The address at which this machine reaches a server that listens on `host`. */
function toAuthority(host: string): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return reachable.includes(':') ? `[${reachable}]` : reachable
}

const SEE = 'see docs/conversion.md'

export async function checkConversion(config: Config): Promise<Diagnostic[]> {
  const { programs, isIsolated } = await createConverter({ config, clock: systemClock })
  return [await checkFfmpeg(programs), await checkIsolation(programs, isIsolated)]
}

async function checkFfmpeg({ ffmpeg, ffprobe }: Programs): Promise<Diagnostic> {
  const check = 'ffmpeg'
  if (ffmpeg === undefined || ffprobe === undefined) {
    const missing = ffmpeg === undefined ? 'ffmpeg' : 'ffprobe'
    const command = '`apt-get install ffmpeg`'
    return warn(check, `there is no ${missing}, so videos are served as they were uploaded; ${command} helps`)
  }
  try {
    return ok(check, `${await readVersion(ffmpeg)} at ${ffmpeg}`)
  } catch (error) {
    return warn(check, `${ffmpeg} does not run (${reasonOf(error)}); install it again`)
  }
}

async function checkIsolation(programs: Programs, isIsolated: () => Promise<boolean>): Promise<Diagnostic> {
  const check = 'isolation'
  if (await isIsolated()) return ok(check, `uploads are converted without network, under ${programs.bwrap}`)
  if (programs.bwrap !== undefined) {
    const message = 'bubblewrap may not make namespaces on this machine, so conversions are limited less'
    return warn(check, `${message}; ${SEE}`)
  }
  if (programs.prlimit === undefined)
    return warn(check, `there is neither bubblewrap nor prlimit, so conversions are not limited; ${SEE}`)
  return warn(
    check,
    'there is no bubblewrap, so conversions are limited less; `apt-get install bubblewrap` helps',
  )
}

export async function checkHostModule({ hooks }: Pick<Config, 'hooks'>): Promise<Diagnostic[]> {
  if (hooks === undefined) return []
  const check = 'host module'
  const { loadHostModule } = await import('../../server/hooks.ts')
  return failOnStartupError(check, async () => {
    const { tools, onUploadComplete } = await loadHostModule(hooks)
    const handler = onUploadComplete === undefined ? '' : ', and handles complete uploads'
    return [ok(check, `${hooks} has ${tools.length} tools${handler}`)]
  })
}

/** Checks each MCP server. A failure is a warning, because only its tools are missing then. */
export function checkMcpServers({ mcp }: Pick<Config, 'mcp'>): Promise<Diagnostic[]> {
  return Promise.all(mcp.map(checkMcpServer))
}

async function checkMcpServer(config: McpServerConfig): Promise<Diagnostic> {
  const check = `mcp ${config.name}`
  const where = config.kind === 'http' ? config.url : config.command
  const { probeMcpServer } = await import('../../tools/mcp.ts')
  try {
    return ok(check, `${where} lists ${await probeMcpServer(config)} tools`)
  } catch (error) {
    const setting = `mcp.${config.name} in the file of PARLEY_CONFIG`
    return warn(check, `${where} cannot be used (${reasonOf(error)}); start it, or correct ${setting}`)
  }
}
