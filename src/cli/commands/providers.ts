/** The `providers` commands list, add, delete and test model providers. */
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { loadSealer } from '../../agents/sealed-keys.ts'
import type { Config } from '../../config/config.ts'
import type { Actor } from '../../identity/audit.ts'
import { StartupError } from '../../lib/errors.ts'
import { providerPresets } from '../../models/presets.ts'
import {
  createProvider,
  deleteProvider,
  listStoredProviders,
  type ProviderDeps,
  testNamedProvider,
  urlOf,
} from '../../models/stored-providers.ts'
import { commandActor, createDeps, withDatabase } from '../installation.ts'
import { print, printResult, renderTable, renderTime } from '../output.ts'

export function list(isJson: boolean): Promise<void> {
  return withProviders(async (deps) => {
    const stored = await listStoredProviders(deps)
    const entries = [...deps.config.providers.map(renderConfigured), ...stored.map(renderStored)]
    if (isJson) return print(JSON.stringify(entries))
    const cells = entries.map(({ name, source, kind, base_url, has_key, created_at }) => [
      ...[name, source, kind, base_url ?? '-', has_key ? 'yes' : 'no', renderTime(created_at)],
    ])
    print(renderTable(['NAME', 'SOURCE', 'KIND', 'BASE URL', 'KEY', 'CREATED'], cells))
  })
}

function renderConfigured(provider: Config['providers'][number]) {
  const { name, kind } = provider
  const has_key = 'apiKey' in provider && provider.apiKey !== undefined
  return { name, source: 'environment', kind, base_url: urlOf(provider), has_key, created_at: null }
}

function renderStored({
  name,
  kind,
  base_url,
  key_sealed,
  created_at,
}: Awaited<ReturnType<typeof listStoredProviders>>[number]) {
  return { name, source: 'console', kind, base_url, has_key: key_sealed !== null, created_at }
}

interface AddOptions {
  readonly preset?: string
  readonly url?: string
  readonly local?: boolean
  readonly keyFile?: string
  readonly json?: boolean
}

export async function add(name: string, options: AddOptions): Promise<void> {
  const preset = findPreset(options.preset)
  const baseUrl = options.url ?? preset?.baseUrl
  if (baseUrl === undefined)
    throw new StartupError('Set --url to the base URL, or --preset to a known provider.')
  const apiKey = await readKey(options.keyFile)
  await withProviders(async (deps, actor) => {
    const kind = options.local === true ? 'local' : (preset?.kind ?? 'gateway')
    const row = await createProvider(deps, actor, name, { kind, base_url: baseUrl, api_key: apiKey })
    printResult(
      options.json === true,
      renderStored(row),
      `added ${name}; running servers use it within seconds`,
    )
  })
}

function findPreset(id: string | undefined) {
  const preset = providerPresets.find((one) => one.id === id)
  if (id === undefined || preset !== undefined) return preset
  const known = providerPresets.map((one) => one.id).join(', ')
  throw new StartupError(`--preset must be one of ${known}.`)
}

/** Reads the key from a file or standard input, because other users can see arguments in the process list. */
async function readKey(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  const content = path === '-' ? await text(process.stdin) : await readFile(path, 'utf8')
  return content.trim()
}

export function remove(name: string, isConfirmed: boolean, isJson: boolean): Promise<void> {
  return withProviders(async (deps, actor) => {
    if (!isConfirmed)
      throw new StartupError(`This deletes the provider '${name}' and its key; add --yes to confirm.`)
    await deleteProvider(deps, actor, name)
    printResult(isJson, { name, deleted: true }, `deleted ${name}`)
  })
}

/** Lists the provider's models. Exits with code 1 if the provider does not respond. */
export function test(name: string, isJson: boolean): Promise<void> {
  return withProviders(async (deps, actor) => {
    const { latencyMs, models = [], problem } = await testNamedProvider(deps, actor, name, undefined)
    const ids = models.map(({ id }) => id)
    const result = {
      name,
      ok: problem === undefined,
      latency_ms: latencyMs,
      problem: problem ?? null,
      models: ids,
    }
    const summary = `${name} lists ${ids.length} models (${latencyMs} ms)`
    printResult(
      isJson,
      result,
      problem === undefined ? [summary, ...ids.map((id) => `  ${id}`)].join('\n') : problem,
    )
    if (problem !== undefined) process.exitCode = 1
  })
}

function withProviders(run: (deps: ProviderDeps, actor: Actor) => Promise<void>): Promise<void> {
  return withDatabase(async (db, config, clock) => {
    const deps = createDeps(db, clock)
    await run({ ...deps, config, sealer: await loadSealer(config, deps) }, commandActor())
  })
}
