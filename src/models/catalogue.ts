/**
 * Caches the providers' model lists; refreshes them in the background, so that requests do not wait for
 * providers.
 */
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { within } from '../lib/timeout.ts'
import type { BackendModel, ChatBackend, ModelRoute } from '../providers/provider.ts'

interface Dependencies {
  readonly config: Pick<Config, 'defaultModel' | 'defaultEmbeddingModel'>
  readonly log: Logger
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
}

export interface CatalogueTimings {
  readonly refreshEveryMs: number
  readonly retryEveryMs: number
  readonly firstListMs: number
}

const standardTimings: CatalogueTimings = {
  refreshEveryMs: 600_000,
  retryEveryMs: 15_000,
  firstListMs: 2_000,
}

export interface CatalogueModel extends BackendModel {
  readonly provider: string
  readonly backendId: string
}

/** The last request for a provider's model list. */
export interface ListCheck {
  /** Null after a success. */
  readonly failure: unknown
  readonly latencyMs: number
  /** Unix seconds. */
  readonly checkedAt: number
}

export class ModelCatalogue {
  private backends: readonly ChatBackend[] = []
  private readonly deps: Dependencies
  private readonly timings: CatalogueTimings
  private readonly lists = new Map<string, ReadonlyMap<string, BackendModel>>()
  private merged: readonly CatalogueModel[] = []
  private byId = new Map<string, CatalogueModel>()
  private readonly checks = new Map<string, ListCheck>()
  private readonly closing = new AbortController()
  private readonly timers = new Map<string, NodeJS.Timeout>()
  private firstLists: Promise<unknown> = Promise.resolve()

  constructor(
    backends: readonly ChatBackend[],
    deps: Dependencies,
    timings: CatalogueTimings = standardTimings,
  ) {
    this.deps = deps
    this.timings = timings
    this.replace(backends)
  }

  /** The names of the providers, in order of precedence. */
  get providers(): readonly string[] {
    return this.backends.map(({ name }) => name)
  }

  /** Replaces the providers, whose names must be unique, and requests the model lists of the new ones. */
  replace(backends: readonly ChatBackend[]): void {
    const added = backends.filter((backend) => !this.backends.includes(backend))
    const removed = this.backends.filter((backend) => !backends.includes(backend))
    this.backends = backends
    for (const { name } of removed) {
      clearTimeout(this.timers.get(name))
      this.timers.delete(name)
      this.lists.delete(name)
      this.checks.delete(name)
    }
    this.merge()
    this.firstLists = Promise.all([this.firstLists, ...added.map((backend) => this.refresh(backend))])
  }

  provider(name: string): ChatBackend | undefined {
    return this.backends.find((backend) => backend.name === name)
  }

  /** Requests a provider's model list now. Has no effect if there is no such provider. */
  async refreshNow(name: string): Promise<void> {
    const backend = this.backends.find((one) => one.name === name)
    if (backend === undefined) return
    clearTimeout(this.timers.get(name))
    await this.refresh(backend)
  }

  /** Returns the last check of a provider; undefined before the first check has ended. */
  check(name: string): ListCheck | undefined {
    return this.checks.get(name)
  }

  listOf(name: string): readonly BackendModel[] {
    return [...(this.lists.get(name)?.values() ?? [])]
  }

  /** Lists all models; an id that is not unique is prefixed with its provider (`provider/model`). */
  list(): readonly CatalogueModel[] {
    return this.merged
  }

  find(id: string): CatalogueModel | undefined {
    return this.byId.get(id)
  }

  /** Returns the route for an id, with or without its provider prefix, or undefined for an unknown model. */
  resolve(id: string): ModelRoute | undefined {
    const listed = this.byId.get(id)
    if (listed !== undefined) return this.findRoute(listed.provider, listed.backendId)
    const prefix = id.slice(0, Math.max(id.indexOf('/'), 0))
    if (this.backends.some(({ name }) => name === prefix)) return this.findQualified(id)
    // Routes an id that no provider lists to the first provider whose list is unavailable.
    if ([...this.lists.values()].some((models) => models.has(id))) return undefined
    const backend = this.backends.find(({ name }) => !this.lists.has(name))
    return backend && { backend, model: id }
  }

  route(id: string): ModelRoute {
    const route = this.resolve(id)
    if (route !== undefined) return route
    throw new ServiceError('model_not_found', `The model '${id}' does not exist.`, { param: 'model' })
  }

  /**
   * Returns undefined for an unknown provider or model; accepts any model while the provider's list is
   * unavailable.
   */
  findRoute(provider: string, model: string): ModelRoute | undefined {
    const backend = this.backends.find(({ name }) => name === provider)
    if (backend === undefined || this.lists.get(provider)?.has(model) === false) return undefined
    return { backend, model }
  }

  /**
   * Returns whether a model accepts a type of attachment. True for text, and for every type if the provider
   * does not list the model's input types.
   */
  takes({ backend, model }: ModelRoute, type: 'image' | 'pdf' | 'text'): boolean {
    const inputs = this.lists.get(backend.name)?.get(model)?.inputs
    return type === 'text' || inputs === undefined || inputs.includes(type === 'pdf' ? 'file' : 'image')
  }

  defaultModel(): string | undefined {
    return this.deps.config.defaultModel ?? this.merged.find(({ chats }) => chats)?.id
  }

  defaultEmbeddingModel(): string | undefined {
    const { merged } = this
    const found = merged.find(({ chats }) => !chats) ?? merged.find(({ embeds }) => embeds)
    return this.deps.config.defaultEmbeddingModel ?? found?.id
  }

  health(): Readonly<Record<string, 'up' | 'down'>> {
    const isUp = (name: string) => this.lists.has(name) && this.checks.get(name)?.failure === null
    return Object.fromEntries(this.backends.map(({ name }) => [name, isUp(name) ? 'up' : 'down']))
  }

  async ready(): Promise<void> {
    await within(this.timings.firstListMs, this.firstLists, () => undefined)
  }

  close(): void {
    this.closing.abort()
    for (const timer of this.timers.values()) clearTimeout(timer)
  }

  private async refresh(backend: ChatBackend): Promise<void> {
    const { signal } = this.closing
    const { name } = backend
    const { clock } = this.deps
    const startedMs = clock.monotonic()
    const [models, failure] = await backend.listModels(signal).then(
      (listed) => [listed, null] as const,
      (error: unknown) => [undefined, error] as const,
    )
    // The provider may have been removed or replaced while it was called.
    if (signal.aborted || !this.backends.includes(backend)) return
    const latencyMs = Math.round(clock.monotonic() - startedMs)
    this.checks.set(name, { failure, latencyMs, checkedAt: unixSeconds(clock) })
    if (models !== undefined) {
      // Removes duplicates, because a gateway may list a model once per server.
      this.lists.set(name, new Map(models.map((model) => [model.id, model])))
      this.merge()
    } else {
      const reason = failure instanceof Error ? failure.message : String(failure)
      this.deps.log.warn({ provider: name, err: failure }, `failed to read the model list: ${reason}`)
    }
    const delayMs = models === undefined ? this.timings.retryEveryMs : this.timings.refreshEveryMs
    clearTimeout(this.timers.get(name))
    this.timers.set(name, setTimeout(() => void this.refresh(backend), delayMs).unref())
  }

  private merge(): void {
    const merged = this.backends.flatMap(({ name: provider }) =>
      [...(this.lists.get(provider)?.values() ?? [])].map((model) => {
        const id = this.isUnique(model.id, provider) ? model.id : `${provider}/${model.id}`
        return { ...model, id, backendId: model.id, provider }
      }),
    )
    const byId = new Map<string, CatalogueModel>()
    // Later entries overwrite earlier ones, so that a listed id takes precedence over an alias.
    for (const model of merged) {
      for (const alias of model.aliases ?? []) {
        if (this.isUnique(alias, model.provider)) byId.set(alias, model)
        byId.set(`${model.provider}/${alias}`, model)
      }
    }
    for (const model of merged) byId.set(`${model.provider}/${model.backendId}`, model)
    for (const model of merged) byId.set(model.id, model)
    this.merged = merged
    this.byId = byId
  }

  /** Returns whether no other provider lists the id, and no provider would read it as `provider/model`. */
  private isUnique(id: string, provider: string): boolean {
    if ([...this.lists].some(([name, models]) => name !== provider && models.has(id))) return false
    return this.findQualified(id) === undefined
  }

  private findQualified(id: string): ModelRoute | undefined {
    const end = Math.max(id.indexOf('/'), 0)
    return this.findRoute(id.slice(0, end), id.slice(end + 1))
  }
}
