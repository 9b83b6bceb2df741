/** Adds, replaces and removes the stored providers that calls can use, without a restart. */
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { Sealer } from '../lib/sealer.ts'
import { createRemote } from '../providers/create.ts'
import type { ChatBackend } from '../providers/provider.ts'
import { inTurn } from '../replicas/in-turn.ts'
import { redactInLogs } from '../telemetry/log.ts'
import type { ModelCatalogue } from './catalogue.ts'
import { reachOf } from './provider-test.ts'
import { openProviderKey } from './sealed-provider-keys.ts'
import { listProviderRows, type ProviderRow } from './store.ts'

/** Polling interval; a poll finds changes that the bus did not report, such as changes made by the CLI. */
const POLL_EVERY_MS = 5_000

interface LiveDeps {
  readonly config: Config
  readonly db: Database
  readonly log: Logger
  readonly sealer: Sealer
  readonly models: ModelCatalogue
}

interface Loaded {
  readonly revision: string
  /** Undefined if the provider cannot be used. */
  readonly backend: ChatBackend | undefined
  readonly problem: string | undefined
}

export interface LiveProviders {
  /** Reads the stored providers again. Call it after every change to them. */
  invalidate(): void
  /** Resolves once this process has loaded the stored providers and the model lists of new ones. */
  settled(): Promise<void>
  /** Returns why a stored provider cannot be used; undefined if it can be. */
  problemOf(name: string): string | undefined
  close(): Promise<void>
}

/**
 * Loads the stored providers and polls for changes. A provider in `environment` takes precedence over a
 * stored one with the same name.
 */
export function followProviders(environment: readonly ChatBackend[], deps: LiveDeps): LiveProviders {
  const { config, db, log, models } = deps
  const retirement = createRetirement(config)
  let loaded = new Map<string, Loaded>()
  let isClosed = false

  async function load(): Promise<void> {
    const rows = await listProviderRows(db)
    const next = new Map<string, Loaded>()
    for (const row of rows) {
      const known = loaded.get(row.name)
      next.set(row.name, known?.revision === row.revision ? known : await openStored(row, deps))
    }
    if (isClosed) return closeAll(listBackends(next))
    const isSame =
      rows.length === loaded.size && rows.every(({ name }) => loaded.get(name) === next.get(name))
    if (isSame) return
    const stored = listBackends(next)
    for (const backend of listBackends(loaded)) if (!stored.includes(backend)) retirement.retire(backend)
    loaded = next
    models.replace(mergeProviders(environment, stored, config))
  }

  const reload = inTurn(async () => {
    if (isClosed) return
    await load().catch((error: unknown) => log.warn({ err: error }, 'could not read the stored providers'))
  })
  const poll = setInterval(() => void reload(), POLL_EVERY_MS).unref()
  return {
    invalidate: () => void reload(),
    async settled() {
      await reload()
      await models.ready()
    },
    problemOf: (name) => loaded.get(name)?.problem,
    async close() {
      clearInterval(poll)
      isClosed = true
      // Waits for a load in progress, which closes the providers that it has opened.
      await reload()
      await Promise.all([closeAll(listBackends(loaded)), retirement.close()])
    },
  }
}

/** Returns why the configuration excludes a stored provider, or undefined. */
export function findUnusedReason(
  { consoleProviders, providers }: Pick<Config, 'consoleProviders' | 'providers'>,
  name: string,
): string | undefined {
  if (consoleProviders === 'off') return 'PARLEY_CONSOLE_PROVIDERS is off.'
  return providers.some((provider) => provider.name === name)
    ? 'A provider from the environment has the same name. Delete one of them.'
    : undefined
}

async function openStored(row: ProviderRow, { config, log, sealer }: LiveDeps): Promise<Loaded> {
  const { name, kind, base_url: url, revision } = row
  const fail = (problem: string) => {
    log.warn({ provider: name }, `the stored provider is not used: ${problem}`)
    return { revision, backend: undefined, problem }
  }
  const unused = findUnusedReason(config, name)
  if (unused !== undefined) return fail(unused)
  try {
    const apiKey = openProviderKey(sealer, row)
    if (apiKey !== undefined) redactInLogs(apiKey)
    const provider = { kind, name, url, apiKey }
    const backend = await createRemote(provider, config.timings, { reach: reachOf(config) })
    return { revision, backend, problem: undefined }
  } catch (error) {
    log.warn({ provider: name, err: error }, 'could not open a stored provider')
    return fail('The API key cannot be decrypted. Enter it again.')
  }
}

/** Closes removed providers after the longest possible call, so that their active calls can end. */
function createRetirement({ timings }: Pick<Config, 'timings'>) {
  const retired = new Map<ChatBackend, NodeJS.Timeout>()
  const longestMs = timings.backendFirstEventMs + Math.max(timings.streamMaxMs, timings.backendTotalMs)
  return {
    retire(backend: ChatBackend): void {
      const close = () => {
        retired.delete(backend)
        void backend.close()
      }
      retired.set(backend, setTimeout(close, longestMs).unref())
    },
    close(): Promise<void> {
      for (const timer of retired.values()) clearTimeout(timer)
      return closeAll([...retired.keys()])
    },
  }
}

function listBackends(loaded: ReadonlyMap<string, Loaded>): ChatBackend[] {
  return [...loaded.values()].flatMap(({ backend }) => backend ?? [])
}

async function closeAll(backends: readonly ChatBackend[]): Promise<void> {
  await Promise.all(backends.map((backend) => backend.close()))
}

/**
 * Puts stored providers after the configured ones, but before mocks at the end of the configured list, so
 * that the default model is a real one.
 */
function mergeProviders(
  environment: readonly ChatBackend[],
  stored: readonly ChatBackend[],
  { providers }: Pick<Config, 'providers'>,
): ChatBackend[] {
  const isMock = ({ name }: ChatBackend) =>
    providers.some((provider) => provider.name === name && provider.kind === 'mock')
  const end = environment.findLastIndex((backend) => !isMock(backend)) + 1
  return [...environment.slice(0, end), ...stored, ...environment.slice(end)]
}
