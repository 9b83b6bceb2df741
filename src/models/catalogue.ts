/** Knows which models the backends offer, refreshed in the background and never on the request path. */

import { ServiceError } from '../lib/errors.ts'
import { within } from '../lib/timeout.ts'
import type { BackendModel, ChatBackend, ModelRoute } from '../providers/provider.ts'
import type { Dependencies } from './dependencies.ts'

/** How often the backends are asked, and how long the very first list is waited for. */
export interface CatalogueTimings {
  readonly refreshEveryMs: number
  /** A backend that did not answer is asked again sooner. */
  readonly retryEveryMs: number
  readonly firstListMs: number
}

/** Decision: 8 (Models). */
const standardTimings: CatalogueTimings = {
  refreshEveryMs: 600_000,
  retryEveryMs: 15_000,
  firstListMs: 2_000,
}

/** A model of a provider, under the id clients use. */
export interface CatalogueModel extends BackendModel {
  readonly provider: string
  /** The id the backend itself knows. */
  readonly backendId: string
}

export interface ModelCatalogue {
  /** Everything the backends have listed; `provider/model` where the bare id is not unique. */
  list(): readonly CatalogueModel[]
  /**
   * The backend for a model id, bare or with its provider in front.
   * @throws ServiceError `model_not_found`
   */
  route(id: string): ModelRoute
  /** The providers' names, the first choice first. */
  readonly providers: readonly string[]
  /**
   * The backend for a provider's own model id; undefined when there is no such provider, or its list is known and lacks the model.
   * While a provider's list is unavailable, any id passes.
   */
  findRoute(provider: string, model: string): ModelRoute | undefined
  /** The listed model of that id, bare or with its provider in front. */
  find(id: string): CatalogueModel | undefined
  /** Whether a request for that id has somewhere to go. */
  isKnown(id: string): boolean
  /** The model used when nobody names one; undefined while no backend has listed any. */
  defaultModel(): string | undefined
  /** The model that embeds when nobody names one; undefined while no backend has listed any. */
  defaultEmbeddingModel(): string | undefined
  /** Whether each backend's list is known: for `/readyz`. */
  health(): Readonly<Record<string, 'up' | 'down'>>
  /** Resolves when every backend has answered once, or after two seconds. */
  ready(): Promise<void>
  close(): void
}

/** A catalogue over those backends; it starts asking them at once. */
export function createModelCatalogue(
  backends: readonly ChatBackend[],
  { config, log }: Pick<Dependencies, 'config' | 'log'>,
  timings: CatalogueTimings = standardTimings,
): ModelCatalogue {
  const names = createModelNames(backends)
  const down = new Set<string>()
  const closing = new AbortController()
  const timers = new Map<string, NodeJS.Timeout>()

  async function refresh(backend: ChatBackend): Promise<void> {
    try {
      names.setList(backend.name, await backend.listModels(closing.signal))
      down.delete(backend.name)
    } catch (error) {
      if (closing.signal.aborted) return
      down.add(backend.name)
      const reason = error instanceof Error ? error.message : String(error)
      log.warn({ provider: backend.name, err: error }, `the model list could not be read: ${reason}`)
    }
    const delayMs = down.has(backend.name) ? timings.retryEveryMs : timings.refreshEveryMs
    timers.set(backend.name, setTimeout(() => void refresh(backend), delayMs).unref())
  }

  function isUp(name: string): boolean {
    return names.hasList(name) && !down.has(name)
  }

  const firstLists = Promise.all(backends.map(refresh))
  return {
    list: names.list,
    providers: backends.map(({ name }) => name),
    findRoute: names.findRoute,
    isKnown: (id) => names.resolve(id) !== undefined,
    find: names.find,
    route(id) {
      const route = names.resolve(id)
      if (route === undefined) {
        throw new ServiceError('model_not_found', `The model '${id}' does not exist here.`, {
          param: 'model',
        })
      }
      return route
    },
    defaultModel: () => config.defaultModel ?? names.list().find(({ chats }) => chats)?.id,
    defaultEmbeddingModel() {
      const listed = names.list()
      const found = listed.find(({ chats }) => !chats) ?? listed.find(({ embeds }) => embeds)
      return config.defaultEmbeddingModel ?? found?.id
    },
    health: () => Object.fromEntries(backends.map(({ name }) => [name, isUp(name) ? 'up' : 'down'])),
    async ready() {
      await within(timings.firstListMs, firstLists, () => {})
    },
    close() {
      closing.abort()
      for (const timer of timers.values()) clearTimeout(timer)
    },
  }
}

/** The lists of all providers, and what ids mean by them. */
export interface ModelNames extends Pick<ModelCatalogue, 'list' | 'find' | 'findRoute'> {
  /** Takes the list of a provider, instead of the one it had. */
  setList(provider: string, models: readonly BackendModel[]): void
  hasList(provider: string): boolean
  /** The place of an id, bare or with its provider in front; undefined when it has none. */
  resolve(id: string): ModelRoute | undefined
}

/** Names for the models of those backends, none of which has given its list yet. */
export function createModelNames(backends: readonly ChatBackend[]): ModelNames {
  const byProvider = new Map(backends.map((backend) => [backend.name, backend]))
  const lists = new Map<string, ReadonlyMap<string, BackendModel>>()
  let merged: readonly CatalogueModel[] = []
  let byId = new Map<string, CatalogueModel>()

  function merge(): void {
    merged = backends.flatMap(({ name }) =>
      [...(lists.get(name)?.values() ?? [])].map((model) => {
        const id = isClear(model.id, name) ? model.id : `${name}/${model.id}`
        return { ...model, id, backendId: model.id, provider: name }
      }),
    )
    byId = new Map()
    // The later of two wins: an alias gives way to whatever is listed under it.
    for (const model of merged) {
      for (const alias of model.aliases ?? []) {
        if (isClear(alias, model.provider)) byId.set(alias, model)
        byId.set(`${model.provider}/${alias}`, model)
      }
    }
    for (const model of merged) byId.set(`${model.provider}/${model.backendId}`, model)
    for (const model of merged) byId.set(model.id, model)
  }

  /** Whether a bare id can mean that provider's model only: another one may list it too, or be called like its beginning. */
  function isClear(id: string, provider: string): boolean {
    if ([...lists].some(([name, models]) => name !== provider && models.has(id))) return false
    const read = splitId(id)
    return read === undefined || findRoute(read.provider, read.model) === undefined
  }

  /** An id read as `provider/model`; undefined when no provider of that name is here. */
  function splitId(id: string): { provider: string; model: string } | undefined {
    const end = Math.max(id.indexOf('/'), 0)
    const provider = id.slice(0, end)
    return byProvider.has(provider) ? { provider, model: id.slice(end + 1) } : undefined
  }

  function findRoute(provider: string, model: string): ModelRoute | undefined {
    const backend = byProvider.get(provider)
    if (backend === undefined || lists.get(provider)?.has(model) === false) return undefined
    return { backend, model }
  }

  function resolve(id: string): ModelRoute | undefined {
    const listed = byId.get(id)
    if (listed !== undefined) return findRoute(listed.provider, listed.backendId)
    const read = splitId(id)
    if (read !== undefined) return findRoute(read.provider, read.model)
    // While a provider's list is unavailable, ids that nobody else has pass through.
    if ([...lists.values()].some((models) => models.has(id))) return undefined
    const backend = backends.find(({ name }) => !lists.has(name))
    return backend && { backend, model: id }
  }

  return {
    setList(provider, models) {
      // A gateway that spreads a model over several servers may list it once for each.
      lists.set(provider, new Map(models.map((model) => [model.id, model])))
      merge()
    },
    hasList: (provider) => lists.has(provider),
    list: () => merged,
    find: (id) => byId.get(id),
    findRoute,
    resolve,
  }
}
