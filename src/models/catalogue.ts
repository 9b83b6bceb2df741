/** Knows which models the backends offer, refreshed in the background and never on the request path. */
import type { BackendModel, ChatBackend } from '../chat/backend.ts'
import { ServiceError } from '../errors.ts'
import type { Dependencies } from './dependencies.ts'
import { createModelNames } from './names.ts'

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

/** Where a request for a model goes. */
export interface ModelRoute {
  readonly backend: ChatBackend
  /** The id the backend itself knows. */
  readonly model: string
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
      let timer: NodeJS.Timeout | undefined
      const waited = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, timings.firstListMs)
      })
      await Promise.race([firstLists, waited])
      clearTimeout(timer)
    },
    close() {
      closing.abort()
      for (const timer of timers.values()) clearTimeout(timer)
    },
  }
}
