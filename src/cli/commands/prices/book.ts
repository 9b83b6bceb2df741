/** Gives commands access to an installation's prices and providers, without a running server. */
import { loadSealer } from '../../../agents/sealed-keys.ts'
import type { Config } from '../../../config/config.ts'
import type { Database } from '../../../db/database.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { Random } from '../../../lib/ids.ts'
import { ModelCatalogue } from '../../../models/catalogue.ts'
import { toLiveOverrides } from '../../../models/live-prices.ts'
import { findUnusedReason } from '../../../models/live-providers.ts'
import { listOverrides } from '../../../models/price-overrides.ts'
import { listStoredProviders, toRemote } from '../../../models/stored-providers.ts'
import { type PriceList, readPriceList, readShippedPrices } from '../../../prices/list.ts'
import { createPriceBook, type PriceBook, type PricedProvider } from '../../../prices/lookup.ts'
import { createBackends, createRemote } from '../../../providers/create.ts'
import type { ChatBackend } from '../../../providers/provider.ts'
import { createLog } from '../../../telemetry/log.ts'
import { printNotice } from '../../output.ts'

export interface PriceDeps {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
}

/** Creates a price book with the providers and prices in the configuration and in the database. */
export async function openPriceBook({ config, db }: Pick<PriceDeps, 'config' | 'db'>): Promise<PriceBook> {
  const { prices, providers } = config
  const byName = new Map<string, PricedProvider>()
  for (const { name, kind, base_url: url } of await listStoredProviders({ db }))
    if (findUnusedReason(config, name) === undefined) byName.set(name, { kind, url })
  for (const provider of providers) byName.set(provider.name, provider)
  const overrides = toLiveOverrides(await listOverrides(db))
  let list: PriceList | undefined
  return createPriceBook({
    findProvider: (name) => byName.get(name),
    findOverride: (key) => overrides.get(key),
    configured: prices.configured,
    list() {
      list ??= prices.file === undefined ? readShippedPrices() : readPriceList(prices.file)
      return list
    },
  })
}

const LIST_MS = 5_000
/** The commands list the models once. */
const once = { refreshEveryMs: 2_147_483_647, retryEveryMs: 2_147_483_647, firstListMs: 2 * LIST_MS }

/**
 * Requests the models of all providers, except models in the server's process, which cost nothing. Calls
 * `run` with them, and prints a notice for each provider that does not respond.
 */
export async function withModels(
  deps: PriceDeps,
  run: (models: ModelCatalogue) => Promise<void>,
): Promise<void> {
  const { config, clock } = deps
  const backends = await openBackends(deps)
  const log = createLog(config)
  log.level = 'silent'
  const models = new ModelCatalogue(backends, { config, log, clock }, once)
  try {
    await models.ready()
    for (const name of models.providers) {
      const { failure } = models.check(name) ?? { failure: new Error('it did not respond in time') }
      if (failure !== null)
        printNotice(
          `warning: the models of ${name} are unknown: ${failure instanceof Error ? failure.message : failure}`,
        )
    }
    await run(models)
  } finally {
    models.close()
    await Promise.all(backends.map((backend) => backend.close()))
  }
}

async function openBackends(deps: PriceDeps): Promise<ChatBackend[]> {
  const { config, db } = deps
  const { timings } = config
  const providers = config.providers.filter(({ kind }) => kind !== 'local-model')
  const rows = (await listStoredProviders({ db })).filter(
    ({ name }) => findUnusedReason(config, name) === undefined,
  )
  const sealer = rows.length === 0 ? undefined : await loadSealer(config, deps)
  const remotes = sealer === undefined ? [] : rows.map((row) => toRemote({ sealer }, row))
  return [
    ...(await createBackends({ providers, timings }, deps)),
    ...(await Promise.all(
      remotes.map((provider) => createRemote(provider, timings, { modelListMs: LIST_MS })),
    )),
  ]
}
