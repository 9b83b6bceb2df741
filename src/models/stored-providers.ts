/** Creates, changes, deletes and lists the providers that administrators add, and tests providers. */
import type { Config, ProviderConfig } from '../config/config.ts'
import { findNameProblem } from '../config/file.ts'
import { baseUrl as baseUrlRule, localUrl } from '../config/values.ts'
import type { Database } from '../db/database.ts'
import { type Actor, recordAudit } from '../identity/audit.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import type { Random } from '../lib/ids.ts'
import { isForbiddenAddress, isPrivateAddress } from '../lib/net.ts'
import type { Sealer } from '../lib/sealer.ts'
import type { RemoteConfig } from '../providers/create.ts'
import { redactInLogs } from '../telemetry/log.ts'
import { type ProviderTest, testProvider } from './provider-test.ts'
import { openProviderKey, sealProviderKey } from './sealed-provider-keys.ts'
import {
  deleteProviderRow,
  findProviderRow,
  insertProviderRow,
  listProviderRows,
  type ProviderRow,
  updateProviderRow,
} from './store.ts'

export interface ProviderDeps {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly nextPosition: () => number
  readonly sealer: Sealer
}

interface ProviderFields {
  readonly kind: 'gateway' | 'local'
  readonly base_url: string
  /** Undefined keeps the stored key; null removes it. */
  readonly api_key?: string | null | undefined
}

const MOST_PROVIDERS = 50
const REVISION_BYTES = 9
/** Shorter keys have no hint, because it would reveal too much of them. */
const SHORTEST_HINTED_KEY = 16
const HINT_LENGTH = 4

/** @throws ServiceError for an invalid field, a name that is taken, or too many providers. */
export async function createProvider(
  deps: ProviderDeps,
  actor: Actor,
  name: string,
  fields: ProviderFields,
): Promise<ProviderRow> {
  assertAllowed(deps)
  assertName(deps, name)
  const { kind, api_key: apiKey } = fields
  const baseUrl = parseBaseUrl(deps, fields)
  const now = unixSeconds(deps.clock)
  const row: ProviderRow = {
    ...{ name, kind, base_url: baseUrl },
    ...sealKey(deps, name, baseUrl, apiKey ?? null),
    ...{ revision: newRevision(deps), created_at: now, updated_at: now },
  }
  await deps.db.transaction().execute(async (trx) => {
    if ((await listProviderRows(trx)).length >= MOST_PROVIDERS)
      throw new ServiceError('conflict', `There are already ${MOST_PROVIDERS} providers; delete one first.`)
    if (!(await insertProviderRow(trx, row))) throw nameTaken(name)
    await record({ ...deps, db: trx }, actor, 'provider.create', row, {
      api_key: row.key_sealed === null ? 'none' : 'set',
    })
  })
  return row
}

/** @throws ServiceError `not_found`, `conflict` after a concurrent change, or for an invalid field. */
export async function updateProvider(
  deps: ProviderDeps,
  actor: Actor,
  name: string,
  fields: ProviderFields,
): Promise<ProviderRow> {
  assertAllowed(deps)
  return deps.db.transaction().execute(async (trx) => {
    const before = await getRow({ ...deps, db: trx }, name)
    const baseUrl = parseBaseUrl(deps, fields)
    const { api_key: apiKey } = fields
    if (apiKey === undefined) assertSameServer(before, baseUrl)
    const key =
      apiKey === undefined
        ? { key_sealed: before.key_sealed, key_hint: before.key_hint }
        : sealKey(deps, name, baseUrl, apiKey)
    const changed = {
      ...{ name, kind: fields.kind, base_url: baseUrl },
      ...{ ...key, revision: newRevision(deps), updated_at: unixSeconds(deps.clock) },
    }
    if (!(await updateProviderRow(trx, before.revision, changed)))
      throw new ServiceError('conflict', `The provider '${name}' was changed at the same time; try again.`)
    await record({ ...deps, db: trx }, actor, 'provider.update', changed, {
      before: { kind: before.kind, base_url: before.base_url },
      api_key: apiKey === undefined ? 'kept' : apiKey === null ? 'removed' : 'replaced',
    })
    return { ...before, ...changed }
  })
}

/** @throws ServiceError `not_found` */
export async function deleteProvider(deps: ProviderDeps, actor: Actor, name: string): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    const row = await deleteProviderRow(trx, name)
    if (row === undefined) throw notStored(deps, name)
    await record({ ...deps, db: trx }, actor, 'provider.delete', row, {})
  })
}

export interface Tested extends ProviderTest {
  readonly provider: RemoteConfig
}

/**
 * Tests the provider `name`, or the values in `fields` before they are saved. If `fields` contains no key,
 * uses the stored key, provided that the server is the same.
 * @throws ServiceError `not_found`, or for an invalid field.
 */
export async function testNamedProvider(
  deps: ProviderDeps,
  actor: Actor,
  name: string,
  fields: ProviderFields | undefined,
  signal?: AbortSignal,
): Promise<Tested> {
  const provider = fields === undefined ? await findTested(deps, name) : await toTested(deps, name, fields)
  if (provider.apiKey !== undefined) redactInLogs(provider.apiKey)
  const tested = await testProvider(deps, provider, signal)
  await record(
    deps,
    actor,
    'provider.test',
    { name, kind: provider.kind, base_url: provider.url },
    { succeeded: tested.problem === undefined, is_draft: fields !== undefined },
  )
  return { ...tested, provider }
}

/** Finds a provider by its name, in the configuration or the database. */
async function findTested(deps: ProviderDeps, name: string): Promise<RemoteConfig> {
  const configured = deps.config.providers.find((provider) => provider.name === name)
  if (configured?.kind === 'gateway' || configured?.kind === 'local') return configured
  if (configured !== undefined)
    throw new ServiceError(
      'invalid_value',
      `name: the provider '${name}' runs in this server, so it has no connection to test`,
      { param: 'name' },
    )
  assertAllowed(deps)
  const row = await getRow(deps, name)
  return { kind: row.kind, name, url: row.base_url, apiKey: openStored(deps, row) }
}

async function toTested(deps: ProviderDeps, name: string, fields: ProviderFields): Promise<RemoteConfig> {
  assertAllowed(deps)
  const url = parseBaseUrl(deps, fields)
  const { kind, api_key: apiKey } = fields
  if (apiKey !== undefined) return { kind, name, url, apiKey: checkKey(apiKey) ?? undefined }
  const row = await findProviderRow(deps.db, name)
  if (row === undefined) return { kind, name, url, apiKey: undefined }
  assertSameServer(row, url)
  return { kind, name, url, apiKey: openStored(deps, row) }
}

export function listStoredProviders({ db }: Pick<ProviderDeps, 'db'>): Promise<ProviderRow[]> {
  return listProviderRows(db)
}

/**
 * Returns a stored provider's configuration with its decrypted key. @throws ServiceError `conflict` if the
 * key cannot be decrypted.
 */
export function toRemote(deps: Pick<ProviderDeps, 'sealer'>, row: ProviderRow): RemoteConfig {
  return { kind: row.kind, name: row.name, url: row.base_url, apiKey: openStored(deps, row) }
}

export function urlOf(provider: ProviderConfig): string | null {
  return 'url' in provider ? provider.url : null
}

function openStored({ sealer }: Pick<ProviderDeps, 'sealer'>, row: ProviderRow): string | undefined {
  try {
    return openProviderKey(sealer, row)
  } catch (cause) {
    throw new ServiceError('conflict', `The API key of '${row.name}' cannot be decrypted; enter it again.`, {
      param: 'api_key',
      cause,
    })
  }
}

async function getRow(deps: ProviderDeps, name: string): Promise<ProviderRow> {
  const row = await findProviderRow(deps.db, name)
  if (row === undefined) throw notStored(deps, name)
  return row
}

function assertAllowed({ config }: ProviderDeps): void {
  if (config.consoleProviders !== 'off') return
  throw new ServiceError(
    'insufficient_permissions',
    'This server uses only the providers in its environment (PARLEY_CONSOLE_PROVIDERS=off).',
  )
}

const reservedNames: Readonly<Record<string, string>> = {
  agent: 'model ids that start with agent/ refer to agents',
  mock: 'it is the name of the built-in mock model',
}

function assertName(deps: ProviderDeps, name: string): void {
  const problem = findNameProblem(name)
  if (problem !== undefined) throw invalid('name', problem.replace('a name must be', 'must be'))
  if (deps.config.providers.some((provider) => provider.name === name)) throw nameTaken(name, 'environment')
  const reason = reservedNames[name]
  if (reason !== undefined) throw invalid('name', `is reserved, because ${reason}`)
}

/** @throws ServiceError `invalid_value` for an invalid URL, or one that the server must not call. */
function parseBaseUrl({ config }: ProviderDeps, { kind, base_url: text }: ProviderFields): string {
  const { data: url, error } = (kind === 'local' ? localUrl() : baseUrlRule()).safeParse(text)
  if (url === undefined) throw invalid('base_url', error?.issues[0]?.message ?? 'is not valid')
  const { hostname } = new URL(url)
  if (isForbiddenAddress(hostname)) throw invalid('base_url', 'must not be a link-local or metadata address')
  const isPrivate = isPrivateAddress(hostname) || /(^|\.)localhost\.?$/.test(hostname)
  if (config.consoleProviders === 'public' && isPrivate)
    throw invalid('base_url', 'must be a public address (PARLEY_CONSOLE_PROVIDERS=public)')
  return url
}

/** Prevents a stored key from being sent to a different server. */
function assertSameServer({ key_sealed: sealed, base_url: before }: ProviderRow, after: string): void {
  if (sealed === null || new URL(before).origin === new URL(after).origin) return
  throw invalid('api_key', `is required to change the server from ${new URL(before).origin}`)
}

function sealKey({ sealer }: ProviderDeps, name: string, baseUrl: string, given: string | null) {
  const apiKey = checkKey(given)
  if (apiKey === null) return { key_sealed: null, key_hint: null }
  redactInLogs(apiKey)
  return {
    key_sealed: sealProviderKey(sealer, { name, baseUrl, apiKey }),
    key_hint: apiKey.length < SHORTEST_HINTED_KEY ? null : apiKey.slice(-HINT_LENGTH),
  }
}

function checkKey(apiKey: string | null): string | null {
  if (apiKey === null || /^[!-~]{1,1000}$/.test(apiKey)) return apiKey
  throw invalid('api_key', 'must be 1 to 1000 visible ASCII characters without spaces')
}

function newRevision({ random }: ProviderDeps): string {
  return Buffer.from(random(REVISION_BYTES)).toString('base64url')
}

type AuditedProvider = Pick<ProviderRow, 'name' | 'kind' | 'base_url'>

function record(
  deps: ProviderDeps,
  actor: Actor,
  action: 'provider.create' | 'provider.update' | 'provider.delete' | 'provider.test',
  { name, kind, base_url }: AuditedProvider,
  details: Readonly<Record<string, unknown>>,
): Promise<void> {
  const target = { kind: 'provider', id: name } as const
  return recordAudit(deps, actor, { action, target, tenantId: null, details: { kind, base_url, ...details } })
}

function invalid(param: string, problem: string): ServiceError {
  return new ServiceError('invalid_value', `${param}: ${problem}`, { param })
}

function nameTaken(name: string, source: 'environment' | 'database' = 'database'): ServiceError {
  const where = source === 'environment' ? "the server's environment" : 'the console'
  return new ServiceError(
    'conflict',
    `name: ${where} already has a provider '${name}'; choose another name`,
    {
      param: 'name',
    },
  )
}

function notStored({ config }: ProviderDeps, name: string): ServiceError {
  if (config.providers.some((provider) => provider.name === name))
    return new ServiceError(
      'conflict',
      `name: '${name}' comes from the server's environment; change it there and restart the server`,
      { param: 'name' },
    )
  return new ServiceError('not_found', `There is no provider '${name}'.`, { param: 'name' })
}
