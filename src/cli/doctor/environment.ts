/**
 * Implements the `parley doctor` checks for Node.js, model providers, the port, conversion programs and
 * tools.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { loadSealer } from '../../agents/sealed-keys.ts'
import type { Config, LocalModelConfig, McpServerConfig } from '../../config/config.ts'
import { createConverter } from '../../conversion/conversion.ts'
import { type Programs, readVersion } from '../../conversion/programs.ts'
import { hasSecret } from '../../db/data-directory.ts'
import type { Database } from '../../db/database.ts'
import { openDatabase } from '../../db/open.ts'
import { listen } from '../../http/server.ts'
import { systemClock } from '../../lib/clock.ts'
import { findNodeTrouble } from '../../lib/node-version.ts'
import type { Sealer } from '../../lib/sealer.ts'
import { findUnusedReason } from '../../models/live-providers.ts'
import { testProvider } from '../../models/provider-test.ts'
import { listStoredProviders, toRemote } from '../../models/stored-providers.ts'
import { createRemote, importLocalModels, type RemoteConfig } from '../../providers/create.ts'
import { BackendFailure } from '../../providers/provider.ts'
import { type Diagnostic, fail, failOnStartupError, ok, reasonOf, warn } from './diagnostic.ts'

const MODEL_LIST_MS = 5_000
const HEALTH_MS = 2_000

export function checkNode(version: string): Diagnostic {
  const trouble = findNodeTrouble(version)
  return trouble === undefined ? ok('node', version) : fail('node', trouble)
}

export async function checkBackends(config: Config): Promise<Diagnostic[]> {
  const { providers, timings } = config
  const stored = await checkStoredProviders(config)
  const isAlone = providers.length === 1 && stored.length === 0
  const diagnostics = await Promise.all(
    providers.map(async (provider) => {
      const check = isAlone ? 'backend' : `backend ${provider.name}`
      if (provider.kind === 'local-model') return checkModelFile(check, provider)
      if (provider.kind !== 'mock') return checkRemote(check, provider, timings)
      return ok(
        check,
        isAlone ? 'mock; set PARLEY_BACKEND to gateway or local to use a language model' : 'mock',
      )
    }),
  )
  return [...diagnostics.flat(), ...stored]
}

/** Checks the providers in the database. Other checks report a database or a secret that cannot be opened. */
async function checkStoredProviders(config: Config): Promise<Diagnostic[]> {
  const { dataDir, databaseUrl } = config
  if (databaseUrl === undefined && dataDir === ':memory:') return []
  const opened = await openDatabase({ ...config, role: 'command' }).catch(() => undefined)
  if (opened === undefined) return []
  try {
    const rows = await listStoredProviders(opened)
    const sealer = rows.length === 0 ? undefined : await findSealer(config, opened.db)
    if (sealer === undefined) return []
    return await Promise.all(
      rows.map(async (row) => {
        const check = `backend ${row.name}`
        const unused = findUnusedReason(config, row.name)
        if (unused !== undefined) return warn(check, `not used: ${unused}`)
        const provider = toRemote({ sealer }, row)
        const { models = [], problem } = await testProvider({ config, clock: systemClock }, provider)
        return problem === undefined
          ? ok(check, `${row.base_url} lists ${models.length} models`)
          : fail(check, problem)
      }),
    )
  } finally {
    await opened.close()
  }
}

async function findSealer(config: Config, db: Database): Promise<Sealer | undefined> {
  if (config.secret === undefined && !(await hasSecret(config.dataDir))) return undefined
  return loadSealer(config, { db, random: randomBytes }).catch(() => undefined)
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
  const backend = await createRemote(provider, timings, { modelListMs: MODEL_LIST_MS })
  try {
    const models = await backend.listModels(new AbortController().signal)
    if (models.length > 0) return ok(check, `${url} lists ${models.length} models`)
    const advice = provider.kind === 'local' ? 'add one, for example with `ollama pull llama3.2`' : 'add one'
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
    const problem = status === undefined ? error.message : `${url} returned ${status}`
    return fail(check, `${problem}; check ${setting}`)
  }
  if (status === 401 || status === 403) {
    const setting = toSetting(provider, 'PARLEY_GATEWAY_API_KEY', 'api_key')
    return fail(check, `${url} returned ${status}; set ${setting} to a valid key`)
  }
  const setting = toSetting(provider, 'PARLEY_GATEWAY_URL', 'url')
  // Some gateways have no model list; the server then passes model ids through unchanged.
  if (status === 404) return warn(check, `${url}/models does not exist; check ${setting}`)
  return fail(
    check,
    `${url} returned no model list (${error.message}); check ${setting} and that the server is running`,
  )
}

/**
 * Returns where the operator can change a provider's setting. A provider that is named after its kind may
 * come from the environment or the file.
 */
function toSetting({ kind, name }: RemoteConfig, variable: string, key: string): string {
  const inFile = `providers.${name}.${key} in the PARLEY_CONFIG file`
  return name === kind ? `${variable} (or ${inFile})` : inFile
}

export async function checkPort(settings: Config['server']): Promise<Diagnostic[]> {
  const { host, port, allowedHosts } = settings
  const check = 'port'
  if (port === 0) return [ok(check, 'any free port (PORT=0)')]
  try {
    const server = await listen(() => {}, host, port)
    await new Promise((resolve) => server.close(resolve).closeAllConnections())
    return [ok(check, `${port} on ${host} is free`)]
  } catch (error) {
    const url = `http://${toAuthority(host)}:${port}`
    if ((await readPage(`${url}/healthz`, allowedHosts)) !== '{"status":"ok"}')
      return [fail(check, reasonOf(error))]
    const running = ok(check, `Parley is already running on ${url}`)
    const report = (await readPage(`${url}/readyz`, allowedHosts)) ?? ''
    return report.includes('"addresses":"shared"') ? [running, sharedAddresses] : [running]
  }
}

const sharedAddresses = warn(
  'client addresses',
  'many clients share one address and its limits; if a proxy is in front of the server, add it to PARLEY_TRUSTED_PROXIES',
)

/** Reads a page with a permitted Host header, which `fetch` cannot set. Returns undefined on failure. */
async function readPage(url: string, [host]: readonly string[]): Promise<string | undefined> {
  const asked = get(url, {
    agent: false,
    signal: AbortSignal.timeout(HEALTH_MS),
    ...(host !== undefined && { headers: { host } }),
  })
  // Handles errors after the response headers, which would otherwise be uncaught.
  asked.on('error', () => {})
  try {
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    return response.statusCode === 200 ? await text(response) : undefined
  } catch {
    return undefined
  } finally {
    asked.destroy()
  }
}

/** Converts a listening address to one that clients on this machine can connect to. */
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
    return warn(
      check,
      `${missing} is not installed, so videos are served unconverted; install it with ${command}`,
    )
  }
  try {
    return ok(check, `${await readVersion(ffmpeg)} at ${ffmpeg}`)
  } catch (error) {
    return warn(check, `${ffmpeg} does not run (${reasonOf(error)}); reinstall it`)
  }
}

async function checkIsolation(programs: Programs, isIsolated: () => Promise<boolean>): Promise<Diagnostic> {
  const check = 'isolation'
  if (await isIsolated())
    return ok(check, `uploads are converted in a sandbox without network access (${programs.bwrap})`)
  if (programs.bwrap !== undefined) {
    const message = 'bubblewrap cannot create namespaces on this machine, so conversions are less isolated'
    return warn(check, `${message}; ${SEE}`)
  }
  if (programs.prlimit === undefined)
    return warn(check, `neither bubblewrap nor prlimit is installed, so conversions are not isolated; ${SEE}`)
  return warn(
    check,
    'bubblewrap is not installed, so conversions are less isolated; install it with `apt-get install bubblewrap`',
  )
}

export async function checkHostModule({ hooks }: Pick<Config, 'hooks'>): Promise<Diagnostic[]> {
  if (hooks === undefined) return []
  const check = 'host module'
  const { loadHostModule } = await import('../../server/hooks.ts')
  return failOnStartupError(check, async () => {
    const { tools, onUploadComplete, onConversionEnd } = await loadHostModule(hooks)
    const handlers = Object.entries({ onUploadComplete, onConversionEnd })
    const names = handlers.filter(([, handler]) => handler !== undefined).map(([name]) => ` and ${name}`)
    return [ok(check, `${hooks} has ${tools.length} tools${names.join('')}`)]
  })
}

/**
 * Checks each MCP server. A failure is only a warning, because the service works without the server's tools.
 */
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
    const setting = `mcp.${config.name} in the PARLEY_CONFIG file`
    return warn(check, `${where} is not usable (${reasonOf(error)}); start it or correct ${setting}`)
  }
}
