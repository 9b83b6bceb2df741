import { pino } from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parseConfig } from '../../src/config/parse.ts'
import {
  type CatalogueTimings,
  createModelCatalogue,
  type ModelCatalogue,
} from '../../src/models/catalogue.ts'
import { BackendFailure, type BackendModel, type ChatBackend } from '../../src/providers/provider.ts'

type List = () => Promise<readonly BackendModel[]>

const model = (id: string, chats = true): BackendModel => ({ id, created: 1, ownedBy: 'somebody', chats })
const fails: List = () => Promise.reject(new BackendFailure('unreachable', 'Nobody is there.'))
const hangs: List = () => new Promise(() => {})
const holds =
  (...ids: string[]): List =>
  async () =>
    ids.map((id) => model(id))

/** A backend that answers the n-th question for its list with the n-th of those, and the rest with the last. */
function createLister(
  name: string,
  ...answers: readonly List[]
): ChatBackend & { readonly asked: Promise<void>[] } {
  let count = 0
  const asked: Promise<void>[] = []
  const notUsed = () => Promise.reject(new Error('nobody chats here'))
  return {
    name,
    asked,
    complete: notUsed,
    stream: notUsed,
    embed: notUsed,
    listModels: () => {
      const answer = (answers[Math.min(count++, answers.length - 1)] as List)()
      asked.push(answer.then(noop, noop))
      return answer
    },
    close: async () => {},
  }
}
function noop() {}

async function createCatalogue(
  backends: readonly ChatBackend[],
  timings: Partial<CatalogueTimings> = {},
  env: Readonly<Record<string, string>> = {},
): Promise<ModelCatalogue> {
  const { config } = await parseConfig(env)
  const standard = { refreshEveryMs: 60_000, retryEveryMs: 60_000, firstListMs: 60_000 }
  const catalogue = createModelCatalogue(
    backends,
    { config, log: pino({ level: 'silent' }) },
    { ...standard, ...timings },
  )
  onTestFinished(() => catalogue.close())
  return catalogue
}

/** Waits until the catalogue says so; the test's own time limit ends the waiting. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

const ids = (catalogue: ModelCatalogue) => catalogue.list().map(({ id }) => id)

test('the first list is waited for, but not for ever', async () => {
  const quick = await createCatalogue([createLister('a', holds('one'))])
  await quick.ready()
  expect(ids(quick)).toEqual(['one'])

  const slow = await createCatalogue([createLister('a', hangs)], { firstListMs: 5 })
  await slow.ready()
  expect(ids(slow)).toEqual([])
  expect(slow.health()).toEqual({ a: 'down' })
})

test('a backend that was away at first is asked again until it answers', async () => {
  const catalogue = await createCatalogue([createLister('a', fails, fails, holds('one'))], {
    retryEveryMs: 1,
  })
  await catalogue.ready()
  expect(catalogue.health()).toEqual({ a: 'down' })
  expect(catalogue.route('anything').model).toBe('anything')
  expect(catalogue.defaultModel()).toBeUndefined()
  await until(() => catalogue.health().a === 'up')
  expect(ids(catalogue)).toEqual(['one'])
  expect(catalogue.defaultModel()).toBe('one')
  expect(() => catalogue.route('anything')).toThrow(/does not exist/)
})

test('a list is read anew now and then', async () => {
  const catalogue = await createCatalogue([createLister('a', holds('old'), holds('new'))], {
    refreshEveryMs: 1,
  })
  await catalogue.ready()
  await until(() => ids(catalogue).includes('new'))
  expect(ids(catalogue)).toEqual(['new'])
  expect(catalogue.isKnown('old')).toBe(false)
})

test('a list that was read once holds while its backend is away', async () => {
  const catalogue = await createCatalogue([createLister('a', holds('one'), fails)], { refreshEveryMs: 1 })
  await catalogue.ready()
  await until(() => catalogue.health().a === 'down')
  expect(catalogue.route('one').model).toBe('one')
  expect(catalogue.isKnown('two')).toBe(false)
})

test('nobody is asked after the end', async () => {
  const backend = createLister('a', fails)
  const catalogue = await createCatalogue([backend], { retryEveryMs: 1 })
  await until(() => backend.asked.length > 2)
  catalogue.close()
  await Promise.all(backend.asked)
  const { length } = backend.asked
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setTimeout(resolve, 1))
  expect(backend.asked).toHaveLength(length)
})

/** Where requests for those ids go, as `provider: its own id`; nowhere is `-`. */
function routesOf(catalogue: ModelCatalogue, ...wanted: readonly string[]): string[] {
  return wanted.map((id) => {
    if (!catalogue.isKnown(id)) return '-'
    const { backend, model: backendId } = catalogue.route(id)
    return `${backend.name}: ${backendId}`
  })
}

describe('of several providers', () => {
  test('a bare id leads to its only one, an ambiguous id needs the provider’s name', async () => {
    const catalogue = await createCatalogue([
      createLister('a', holds('shared', 'mine')),
      createLister('b', holds('shared', 'yours')),
    ])
    await catalogue.ready()
    expect(catalogue.providers).toEqual(['a', 'b'])
    expect(ids(catalogue)).toEqual(['a/shared', 'mine', 'b/shared', 'yours'])
    const wanted = ['a/shared', 'b/shared', 'mine', 'a/mine', 'yours', 'b/yours']
    expect(routesOf(catalogue, ...wanted)).toEqual([
      'a: shared',
      'b: shared',
      'a: mine',
      'a: mine',
      'b: yours',
      'b: yours',
    ])
    expect(routesOf(catalogue, 'shared', 'b/mine', 'c/shared')).toEqual(['-', '-', '-'])
  })

  test.each<[what: string, lists: Record<string, List>, listed: string[], routes: Record<string, string>]>([
    [
      'begins like another provider’s name',
      { a: holds('meta/llama'), meta: holds('other') },
      ['meta/llama', 'other'],
      { 'meta/llama': 'a: meta/llama', 'a/meta/llama': 'a: meta/llama', 'meta/other': 'meta: other' },
    ],
    [
      'reads as another provider’s model',
      { a: holds('meta/llama'), meta: holds('llama') },
      ['a/meta/llama', 'llama'],
      { 'meta/llama': 'meta: llama', 'a/meta/llama': 'a: meta/llama', llama: 'meta: llama' },
    ],
    [
      'reads as another model of its own provider',
      { a: holds('a/llama', 'llama') },
      ['a/a/llama', 'llama'],
      { 'a/llama': 'a: llama', 'a/a/llama': 'a: a/llama', llama: 'a: llama' },
    ],
    [
      'begins like its own provider’s name',
      { a: holds('a/llama') },
      ['a/llama'],
      { 'a/llama': 'a: a/llama', 'a/a/llama': 'a: a/llama', llama: '-' },
    ],
    [
      'reads as a model of a provider that has not said what it has',
      { a: holds('meta/llama'), meta: fails },
      ['a/meta/llama'],
      { 'meta/llama': 'meta: llama', 'a/meta/llama': 'a: meta/llama', 'meta/x/y': 'meta: x/y' },
    ],
    [
      'begins like no provider’s name',
      { a: holds('x/y'), b: holds('z') },
      ['x/y', 'z'],
      { 'x/y': 'a: x/y', 'a/x/y': 'a: x/y', 'b/x/y': '-', 'x/z': '-' },
    ],
  ])('a model whose id %s has one place', async (_what, lists, listed, routes) => {
    const catalogue = await createCatalogue(
      Object.entries(lists).map(([name, list]) => createLister(name, list)),
    )
    await catalogue.ready()
    expect(ids(catalogue)).toEqual(listed)
    expect(routesOf(catalogue, ...Object.keys(routes))).toEqual(Object.values(routes))
    for (const { id, provider, backendId } of catalogue.list()) {
      for (const name of [id, `${provider}/${backendId}`]) {
        expect(catalogue.find(name)).toMatchObject({ id, provider, backendId })
        expect(routesOf(catalogue, name)).toEqual([`${provider}: ${backendId}`])
      }
    }
  })

  test('one whose list is unavailable takes its own prefix, and what nobody else may mean', async () => {
    const catalogue = await createCatalogue([
      createLister('a', holds('shared', 'mine')),
      createLister('b', holds('shared')),
      createLister('c', fails),
      createLister('d', fails),
    ])
    await catalogue.ready()
    const expected = {
      'c/x': 'c: x',
      'd/x': 'd: x',
      'c/mine': 'c: mine',
      mine: 'a: mine',
      unheard: 'c: unheard',
      'un/heard': 'c: un/heard',
      shared: '-',
      'a/unheard': '-',
    }
    expect(routesOf(catalogue, ...Object.keys(expected))).toEqual(Object.values(expected))
    expect(ids(catalogue)).toEqual(['a/shared', 'mine', 'b/shared'])
  })

  test('a provider is asked for by its name and its own id', async () => {
    const catalogue = await createCatalogue([createLister('a', holds('x', 'a/x')), createLister('b', fails)])
    await catalogue.ready()
    const found = (provider: string, id: string) => {
      const route = catalogue.findRoute(provider, id)
      return route && `${route.backend.name}: ${route.model}`
    }
    expect([found('a', 'x'), found('a', 'a/x'), found('b', 'anything')]).toEqual([
      'a: x',
      'a: a/x',
      'b: anything',
    ])
    for (const [provider, id] of [
      ['a', 'y'],
      ['c', 'x'],
    ] as const) {
      expect(found(provider, id)).toBeUndefined()
    }
  })
})

test('the default is the operator’s, else the first model that can do it', async () => {
  const list: List = async () => [model('embedder', false), model('talker')]
  const own = await createCatalogue([createLister('a', list)])
  await own.ready()
  expect([own.defaultModel(), own.defaultEmbeddingModel()]).toEqual(['talker', 'embedder'])
  const settings = { PARLEY_DEFAULT_MODEL: 'special', PARLEY_DEFAULT_EMBEDDING_MODEL: 'small' }
  const chosen = await createCatalogue([createLister('a', list)], {}, settings)
  expect([chosen.defaultModel(), chosen.defaultEmbeddingModel()]).toEqual(['special', 'small'])
})

test('a model that chats embeds too where it can and no other does', async () => {
  const both: List = async () => [model('talker'), { ...model('both'), embeds: true }]
  const catalogue = await createCatalogue([createLister('a', both)])
  await catalogue.ready()
  expect([catalogue.defaultModel(), catalogue.defaultEmbeddingModel()]).toEqual(['talker', 'both'])
  const beside = await createCatalogue([
    createLister('a', both),
    createLister('b', async () => [model('own', false)]),
  ])
  await beside.ready()
  expect(beside.defaultEmbeddingModel()).toBe('own')
})

test('an alias means its model, unless another is listed under it or it is not the only one', async () => {
  const aliased = (id: string, alias: string) => ({ ...model(id), aliases: [alias] })
  const first: List = async () => [aliased('x:latest', 'x'), aliased('y:latest', 'y'), model('y')]
  const second: List = async () => [model('x')]
  const alone = await createCatalogue([createLister('a', first)])
  await alone.ready()
  expect([alone.route('x').model, alone.route('a/x').model]).toEqual(['x:latest', 'x:latest'])
  expect([alone.route('y').model, alone.find('a/y')?.backendId]).toEqual(['y', 'y'])
  expect(alone.list().map(({ id }) => id)).toEqual(['x:latest', 'y:latest', 'y'])
  const beside = await createCatalogue([createLister('a', first), createLister('b', second)])
  await beside.ready()
  expect([beside.route('x').backend.name, beside.route('a/x').model]).toEqual(['b', 'x:latest'])
})
