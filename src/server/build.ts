/** Opens and connects a service's components (the composition root). */
import type { Logger } from 'pino'
import packageJson from '../../package.json' with { type: 'json' }
import { type Agent, createAgentDirectory } from '../agents/cache.ts'
import { attachmentBytesOf } from '../agents/definition-parts.ts'
import { loadSealer, resealAgentKeys } from '../agents/sealed-keys.ts'
import { sumArtifactBytes } from '../artifacts/artifacts.ts'
import { createVisitorUploads, namedBlobs } from '../artifacts/maintenance.ts'
import type { OnConversionEnd, OnUploadComplete } from '../artifacts/metadata.ts'
import { createArtifactService } from '../artifacts/processing.ts'
import { BoundViolations } from '../budgets/bound-violations.ts'
import { BudgetEnforcer } from '../budgets/enforcer.ts'
import { followMeters } from '../budgets/model-meters.ts'
import { createForgetSpending, deriveSubjectKey } from '../budgets/subjects.ts'
import type { Config } from '../config/config.ts'
import { Conversations } from '../conversations/conversations.ts'
import { createConverter } from '../conversion/conversion.ts'
import type { Database, OpenedDatabase } from '../db/database.ts'
import { shareSecret } from '../db/installation.ts'
import { createConversationStorage } from '../db/open.ts'
import { StorageQuota } from '../files/quota.ts'
import { createTokens } from '../identity/artifact-tokens.ts'
import { createAuthenticator, createKeyDirectory, createUserDirectory } from '../identity/authenticate.ts'
import { createVisitorTokens } from '../identity/visitor-tokens.ts'
import { type Clock, createPositions } from '../lib/clock.ts'
import { type Random, systemRandom } from '../lib/ids.ts'
import { ModelCatalogue } from '../models/catalogue.ts'
import { followPrices, type LivePrices } from '../models/live-prices.ts'
import { followProviders } from '../models/live-providers.ts'
import { resealProviderKeys } from '../models/sealed-provider-keys.ts'
import { AddressSharing } from '../operations/address-sharing.ts'
import { type PriceList, readPriceList, readShippedPrices } from '../prices/list.ts'
import { createPriceBook, type PriceBook } from '../prices/lookup.ts'
import { createBackends } from '../providers/create.ts'
import { Breakers } from '../providers/retry.ts'
import { type Bus, broadcastInvalidation } from '../replicas/bus.ts'
import { countStreams, type StreamLimiter } from '../replicas/limits.ts'
import { openReplicas } from '../replicas/replicas.ts'
import type { Blobs, ResumableStore } from '../storage/blobs.ts'
import { openStoreFolder } from '../storage/folder.ts'
import { claimFolders, type StoreName, storeNames } from '../storage/mark.ts'
import { abandonedBefore, openBlobs, openUploadStore, type StoreDeps } from '../storage/open.ts'
import { Metrics } from '../telemetry/metrics.ts'
import type { CollectFromWorkers } from '../telemetry/prometheus.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import type { HostTools } from '../tools/host-tools.ts'
import { startMcpServers } from '../tools/mcp.ts'
import { createToolbox, type Toolbox } from '../tools/tools.ts'
import { createUsageTracker } from '../usage/tracker.ts'
import { KeySets, resealVisitorSecrets } from '../visitors/access.ts'
import { Erasures } from '../visitors/erasures.ts'
import { Followers } from '../visitors/followers.ts'
import { Deliverer } from '../webhooks/deliverer.ts'
import type { WebhookService } from '../webhooks/dependencies.ts'
import { createWebhookDirectory } from '../webhooks/directory.ts'
import { OperatorWebhooks } from '../webhooks/operator-webhooks.ts'
import { type EventSource, OutboxRelay } from '../webhooks/outbox-relay.ts'
import { resealWebhookSecrets } from '../webhooks/sealed-secrets.ts'
import { Sender } from '../webhooks/sender.ts'
import type { Deps } from './dependencies.ts'
import { joinHooks, loadHostModule, type ReadHooks, readHooks } from './hooks.ts'

export async function gatherHooks({ config, ...options }: ServiceOptions): Promise<ReadHooks> {
  const given = readHooks(options, 'createService')
  if (config.hooks === undefined) return given
  return joinHooks(given, await loadHostModule(config.hooks))
}

export async function createDeps(
  options: ServiceOptions & { readonly log: Logger },
  opened: OpenedDatabase,
  hooks: ReadHooks,
): Promise<Deps> {
  const { backgroundDb, dbFor = () => opened.db, postgres, isOnlyServer } = opened
  const { config, clock = opened.clock, random = systemRandom, log } = options
  const db = dbFor('uploads')
  // Runs first, because a server with the wrong database must not change anything.
  await claimFolders(config, listOwnStores(options), { db, clock, log, namedBlobs })
  const sealer = await loadSealer(config, { db, random })
  if (!isOnlyServer) await shareSecret({ db, clock }, sealer)
  await resealKeys({ db, sealer, log })
  const converter = await createConverter({ config, clock })
  // Runs before background work starts, because opening the stores may fail.
  const { fileBlobs, store, workFolder } = await openStores(options, { db, clock, log, isOnlyServer })
  const nextPosition = createPositions(clock)
  // Runs after the stores are open; otherwise, a failure to open them would leave the providers running.
  const backends = await createBackends(config, { clock, random })
  const models = new ModelCatalogue(backends, { config, log, clock })
  const metrics = new Metrics((provider, model) => models.find(`${provider}/${model}`) !== undefined)
  const tracing = await startTracing(config, log)
  const replicas = await openReplicas(config, postgres, { db: backgroundDb, clock, random, log })
  const shared = { ...replicas, streams: countStreams(replicas.streams, metrics) }
  const { bus } = shared
  const priceOverrides = broadcastInvalidation(bus, 'prices', followPrices({ db: backgroundDb, log }))
  const prices = createPrices(config, models, priceOverrides)
  const { keys, users, agents } = createDirectories(bus, dbFor, { config, clock, random, nextPosition })
  const tokens = createTokens({ sealer, clock, keys })
  const jobDeps = { config, db: backgroundDb, clock, random, log, metrics, tracing }
  const spending = createUsage(bus, { ...jobDeps, db: dbFor('calls'), sealer, prices })
  const { outbox } = spending.budgets
  const webhooks = createWebhooks({ ...jobDeps, bus, sealer, outbox }, dbFor('conversations'))
  const uploads = createArtifacts({ ...jobDeps, store, workFolder, converter, bus, tokens }, db, hooks)
  const deps: Deps = {
    config,
    db,
    inArea: undefined,
    clock,
    random,
    log,
    metrics,
    tracing,
    nextPosition,
    sealer,
    keys,
    agents,
    users,
    tokens,
    ...createVisitors({ sealer, clock, random, log, allow: config.webhooks.allow }, replicas.streams),
    addressSharing: new AddressSharing({ clock, log }),
    authenticator: createAuthenticator({ keys, tokens, users }),
    ...{ backends, models, prices, priceOverrides, attachmentBytes: createAttachmentBytes(agents) },
    providers: createProviders(bus, backends, { config, db: backgroundDb, log, sealer, models }),
    breakers: new Breakers(config.breaker, clock),
    shared,
    ...spending,
    tools: createToolbox(hooks.tools, startMcp(config, { clock, random, log })),
    ...{ onUploadComplete: hooks.onUploadComplete, converter, fileBlobs, webhooks, ...uploads },
    ...createConversations(
      { ...jobDeps, ...uploads, bus, nextPosition, isOnlyServer, fileBlobs, agents, webhooks },
      sealer,
    ),
  }
  return isOnlyServer ? deps : { ...deps, inArea: createAreaDeps(deps, dbFor) }
}

/** Reads the price list now if a configured provider needs it, otherwise as soon as any provider does. */
function createPrices(
  { prices, providers }: Config,
  models: ModelCatalogue,
  overrides: LivePrices,
): PriceBook {
  let known: PriceList | undefined
  const list = () => {
    known ??= prices.file === undefined ? readShippedPrices() : readPriceList(prices.file)
    return known
  }
  if (prices.file !== undefined || providers.some(({ kind }) => kind === 'gateway')) list()
  return createPriceBook({
    findProvider: (name) => models.provider(name)?.pricing,
    findOverride: overrides.find,
    configured: prices.configured,
    list,
  })
}

function createUsage(
  bus: Bus,
  given: Pick<Deps, 'config' | 'db' | 'clock' | 'random' | 'log' | 'metrics' | 'sealer' | 'prices'>,
) {
  const budgets = new BudgetEnforcer({ ...given, subjectKey: deriveSubjectKey(given.sealer) })
  const meters = broadcastInvalidation(bus, 'meters', followMeters(given))
  const violations = new BoundViolations({ ...given, outbox: budgets.outbox, meters })
  const tracker = createUsageTracker({ ...given, budgets, meters, violations })
  return { budgets, meters, violations, usage: broadcastInvalidation(bus, 'budgets', tracker) }
}

async function resealKeys(deps: Parameters<typeof resealAgentKeys>[0]): Promise<void> {
  await resealAgentKeys(deps)
  await resealProviderKeys(deps)
  await resealWebhookSecrets(deps)
  await resealVisitorSecrets(deps)
}

/**
 * Creates the live providers. After a change, a message on the bus makes the other replicas load them again.
 */
function createProviders(bus: Bus, ...given: Parameters<typeof followProviders>) {
  return broadcastInvalidation(bus, 'providers', followProviders(...given))
}

function createArtifacts(
  deps: Omit<Parameters<typeof createArtifactService>[0], 'onUploadComplete' | 'onConversionEnd'> &
    Pick<Deps, 'tokens'>,
  db: Database,
  { onUploadComplete, onConversionEnd }: ReadHooks,
) {
  const { config, clock } = deps
  const quota = new StorageQuota({ config, clock, sumArtifactBytes })
  const artifacts = createArtifactService({ ...deps, onUploadComplete, onConversionEnd })
  return { quota, artifacts, visitorUploads: createVisitorUploads({ ...deps, db, quota, artifacts }) }
}

function createConversations(
  deps: Pick<
    Deps,
    | 'config'
    | 'db'
    | 'clock'
    | 'random'
    | 'log'
    | 'metrics'
    | 'nextPosition'
    | 'fileBlobs'
    | 'agents'
    | 'visitorUploads'
  > & {
    readonly bus: Bus
    readonly isOnlyServer: boolean
    readonly webhooks: WebhookService
  },
  sealer: Deps['sealer'],
) {
  const forgetSpending = createForgetSpending(deps.db, async () => sealer)
  const conversations = new Conversations({
    ...deps,
    forgetSpending,
    metrics: deps.metrics.conversations,
    openBlobs: async () => deps.fileBlobs,
    deleteUploads: (ids) => deps.visitorUploads.delete(ids),
    storage: deps.webhooks.storage,
    capabilityKey: sealer.derive('parley stream capability key', 32),
    findHandoverRules: async ({ tenantId, agentId }) =>
      (await deps.agents.find(tenantId, agentId))?.definition.conversations?.handover,
  })
  const onAgentDeleted: Deps['onAgentDeleted'] = (tenantId, agentId) =>
    conversations.deletions.deleteOfAgent(tenantId, agentId)
  const erasures = new Erasures({
    ...deps,
    forgetSpending,
    storage: deps.webhooks.storage,
    dropDeleted: () => conversations.data.dropDeleted(),
    deleteUploadsOf: (visitor) => deps.visitorUploads.deleteOf(visitor),
    cancelTurnsOf: (id) => conversations.cancelTurnsOf(id),
    onErased: () => conversations.quota.forget(),
  })
  const listSentUploads: Deps['listSentUploads'] = (ids) => conversations.data.listUploads(ids)
  return { conversations, onAgentDeleted, erasures, listSentUploads }
}

function createWebhooks(
  given: Pick<Deps, 'config' | 'db' | 'clock' | 'random' | 'log' | 'metrics' | 'sealer'> & {
    readonly bus: Bus
    readonly outbox: EventSource
  },
  db: Database,
): WebhookService {
  const { bus, config, clock } = given
  const { databaseUrl, dataDir } = config
  const storage = createConversationStorage({ db, databaseUrl }, dataDir, clock)
  const deps = { ...given, storage }
  const onPrepared = () => deliverer.expect()
  const directory = broadcastInvalidation(bus, 'webhooks', createWebhookDirectory({ ...deps, onPrepared }))
  const operator = new OperatorWebhooks(config.webhooks.ofOperator)
  const sender = new Sender({ ...deps, allow: config.webhooks.allow, operatorHosts: operator.hosts })
  const relay = new OutboxRelay({ source: given.outbox, storage, directory, operator })
  const metrics = deps.metrics.conversations
  const deliverer = new Deliverer({ ...deps, metrics, directory, sender, operator, relay })
  return { ...directory, storage, deliverer, wake: () => deliverer.wake() }
}

/** Raises the body limit of agent keys for agents that accept attachments. */
function createAttachmentBytes(agents: Deps['agents']): Deps['attachmentBytes'] {
  const bytesOf = (agent: Agent | undefined) => attachmentBytesOf(agent?.definition.attachments)
  return ({ tenantId, agentId }) => {
    const agent = agents.find(tenantId, agentId)
    return agent instanceof Promise ? agent.then(bytesOf) : bytesOf(agent)
  }
}

function createVisitors(
  deps: Parameters<typeof createVisitorTokens>[0] & ConstructorParameters<typeof KeySets>[0],
  streams: StreamLimiter,
) {
  // The metrics of open streams do not include feeds.
  return {
    visitorTokens: createVisitorTokens(deps),
    followers: new Followers(streams),
    keySets: new KeySets(deps),
  }
}

type DatabaseFor = (area: string) => Database

/** Creates the caches of keys, users and agents, which other replicas invalidate over the bus. */
function createDirectories(
  bus: Bus,
  dbFor: DatabaseFor,
  deps: Pick<Deps, 'config' | 'clock' | 'random' | 'nextPosition'>,
) {
  const { clock } = deps
  const keys = broadcastInvalidation(bus, 'keys', createKeyDirectory(dbFor('keys'), clock))
  const userDeps = { ...deps, db: dbFor('users'), keys }
  return {
    keys,
    users: broadcastInvalidation(bus, 'users', createUserDirectory(userDeps)),
    agents: broadcastInvalidation(bus, 'agents', createAgentDirectory(dbFor('agents'), clock)),
  }
}

function createAreaDeps(deps: Deps, dbFor: DatabaseFor): (area: string) => Deps {
  const areas = new Map<string, Deps>()
  return (area) => {
    const known = areas.get(area) ?? { ...deps, db: dbFor(area) }
    areas.set(area, known)
    return known
  }
}

function listOwnStores({ fileBlobs, artifactStore }: ServiceOptions): StoreName[] {
  const brought = { files: fileBlobs, artifacts: artifactStore }
  return storeNames.filter((name) => brought[name] === undefined)
}

async function openStores(options: ServiceOptions, deps: StoreDeps) {
  const { config } = options
  const opened: { close(): Promise<void> }[] = []
  try {
    const workFolder = await openStoreFolder(config.dataDir, 'conversions', abandonedBefore(deps))
    opened.push(workFolder)
    const fileBlobs = options.fileBlobs ?? (await openBlobs(config, 'files', deps))
    opened.push(fileBlobs)
    const store = options.artifactStore ?? (await openUploadStore(config, 'artifacts', deps))
    return { workFolder, fileBlobs, store }
  } catch (error) {
    await Promise.all(opened.map((place) => place.close()))
    throw error
  }
}

async function startTracing({ tracing }: Config, log: Logger): Promise<Tracing | undefined> {
  if (tracing === undefined) return undefined
  const { openTracing } = await import('../telemetry/otel.ts')
  return openTracing(tracing, { version: packageJson.version, log })
}

function startMcp(
  { mcp, timings }: Config,
  deps: Pick<Deps, 'clock' | 'random' | 'log'>,
): Toolbox | undefined {
  return mcp.length === 0 ? undefined : startMcpServers(mcp, { ...deps, callMs: timings.toolMs })
}

export interface ServiceOptions {
  readonly config: Config
  readonly clock?: Clock
  readonly random?: Random
  readonly log?: Logger
  /** Stores files; closed with the service. */
  readonly fileBlobs?: Blobs
  /** Tools that run in this process; they replace tools with the same name in `PARLEY_HOOKS`. */
  readonly tools?: HostTools
  /** Called for each complete upload; replaces the callback in `PARLEY_HOOKS`. */
  readonly onUploadComplete?: OnUploadComplete
  /** Called for each conversion that has ended or failed; replaces the callback in `PARLEY_HOOKS`. */
  readonly onConversionEnd?: OnConversionEnd
  /** Stores artifacts; closed with the service. */
  readonly artifactStore?: ResumableStore
  /** Collects the metrics of all workers, whose sums `/metrics` reports. */
  readonly collectFromWorkers?: CollectFromWorkers
}
