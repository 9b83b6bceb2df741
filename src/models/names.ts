/** Gives every listed model the ids it is asked for by, and finds out which provider an id means. */
import type { BackendModel, ChatBackend } from '../chat/backend.ts'
import type { CatalogueModel, ModelCatalogue, ModelRoute } from './catalogue.ts'

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
