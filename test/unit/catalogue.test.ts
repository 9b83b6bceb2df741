/** Tests how the model catalogue refreshes its lists, resolves model ids and chooses default models. */
import { pino } from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parseConfig } from '../../src/config/parse.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { type CatalogueTimings, ModelCatalogue } from '../../src/models/catalogue.ts'
import { BackendFailure, type BackendModel, type ChatBackend } from '../../src/providers/provider.ts'

type List = () => Promise<readonly BackendModel[]>

const model = (id: string, chats = true): BackendModel => ({ id, created: 1, ownedBy: 'example', chats })
const fails: List = () => Promise.reject(new BackendFailure('unreachable', 'connection refused'))
const hangs: List = () => new Promise(() => {})
const holds =
  (...ids: string[]): List =>
  async () =>
    ids.map((id) => model(id))

/** Creates a backend that returns these model lists in order and then repeats the last one. */
function createLister(
  name: string,
  ...answers: readonly List[]
): ChatBackend & { readonly asked: Promise<void>[] } {
  let count = 0
  const asked: Promise<void>[] = []
  const notUsed = () => Promise.reject(new Error('chat is not used here'))
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
  const catalogue = new ModelCatalogue(
    backends,
    { config, log: pino({ level: 'silent' }), clock: systemClock },
    { ...standard, ...timings },
  )
  onTestFinished(() => catalogue.close())
  return catalogue
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

const ids = (catalogue: ModelCatalogue) => catalogue.list().map(({ id }) => id)

test('the catalogue waits for the first model list only for a limited time', async () => {
  const quick = await createCatalogue([createLister('a', holds('one'))])
  await quick.ready()
  expect(ids(quick)).toEqual(['one'])

  const slow = await createCatalogue([createLister('a', hangs)], { firstListMs: 5 })
  await slow.ready()
  expect(ids(slow)).toEqual([])
  expect(slow.health()).toEqual({ a: 'down' })
})

test('the catalogue keeps requesting the model list of an unavailable backend until the backend responds', async () => {
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

test('the catalogue refreshes a model list periodically', async () => {
  const catalogue = await createCatalogue([createLister('a', holds('old'), holds('new'))], {
    refreshEveryMs: 1,
  })
  await catalogue.ready()
  await until(() => ids(catalogue).includes('new'))
  expect(ids(catalogue)).toEqual(['new'])
  expect(catalogue.resolve('old')).toBeUndefined()
})

test('a model list remains valid while its backend is unavailable', async () => {
  const catalogue = await createCatalogue([createLister('a', holds('one'), fails)], { refreshEveryMs: 1 })
  await catalogue.ready()
  await until(() => catalogue.health().a === 'down')
  expect(catalogue.route('one').model).toBe('one')
  expect(catalogue.resolve('two')).toBeUndefined()
})

test('a closed catalogue does not send requests to backends', async () => {
  const backend = createLister('a', fails)
  const catalogue = await createCatalogue([backend], { retryEveryMs: 1 })
  await until(() => backend.asked.length > 2)
  catalogue.close()
  await Promise.all(backend.asked)
  const { length } = backend.asked
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setTimeout(resolve, 1))
  expect(backend.asked).toHaveLength(length)
})

/** Returns each id's route as `provider: model id`, or `-` if it has no route. */
function routesOf(catalogue: ModelCatalogue, ...wanted: readonly string[]): string[] {
  return wanted.map((id) => {
    const route = catalogue.resolve(id)
    return route === undefined ? '-' : `${route.backend.name}: ${route.model}`
  })
}

describe('a model id on a server with several providers', () => {
  test("requires the provider's name as a prefix only if it is ambiguous", async () => {
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
      "starts with another provider's name",
      { a: holds('meta/llama'), meta: holds('other') },
      ['meta/llama', 'other'],
      { 'meta/llama': 'a: meta/llama', 'a/meta/llama': 'a: meta/llama', 'meta/other': 'meta: other' },
    ],
    [
      "equals another provider's model id with that provider's prefix",
      { a: holds('meta/llama'), meta: holds('llama') },
      ['a/meta/llama', 'llama'],
      { 'meta/llama': 'meta: llama', 'a/meta/llama': 'a: meta/llama', llama: 'meta: llama' },
    ],
    [
      'equals another model id of the same provider with the prefix',
      { a: holds('a/llama', 'llama') },
      ['a/a/llama', 'llama'],
      { 'a/llama': 'a: llama', 'a/a/llama': 'a: a/llama', llama: 'a: llama' },
    ],
    [
      "starts with its own provider's name",
      { a: holds('a/llama') },
      ['a/llama'],
      { 'a/llama': 'a: a/llama', 'a/a/llama': 'a: a/llama', llama: '-' },
    ],
    [
      'could belong to a provider without a model list',
      { a: holds('meta/llama'), meta: fails },
      ['a/meta/llama'],
      { 'meta/llama': 'meta: llama', 'a/meta/llama': 'a: meta/llama', 'meta/x/y': 'meta: x/y' },
    ],
    [
      "starts with an unknown provider's name",
      { a: holds('x/y'), b: holds('z') },
      ['x/y', 'z'],
      { 'x/y': 'a: x/y', 'a/x/y': 'a: x/y', 'b/x/y': '-', 'x/z': '-' },
    ],
  ])('resolves to exactly one model if it %s', async (_what, lists, listed, routes) => {
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

  test('is routed to a provider without a model list if no other provider lists it', async () => {
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

  test('can be resolved within one provider', async () => {
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

test('the default model is the configured one or, if none is configured, the first suitable model', async () => {
  const list: List = async () => [model('embedder', false), model('talker')]
  const own = await createCatalogue([createLister('a', list)])
  await own.ready()
  expect([own.defaultModel(), own.defaultEmbeddingModel()]).toEqual(['talker', 'embedder'])
  const settings = { PARLEY_DEFAULT_MODEL: 'special', PARLEY_DEFAULT_EMBEDDING_MODEL: 'small' }
  const chosen = await createCatalogue([createLister('a', list)], {}, settings)
  expect([chosen.defaultModel(), chosen.defaultEmbeddingModel()]).toEqual(['special', 'small'])
})

test('a chat model that supports embeddings is the default embedding model only if there is no dedicated one', async () => {
  const both: List = async () => [model('talker'), { ...model('both'), embeds: true }]
  const catalogue = await createCatalogue([createLister('a', both)])
  await catalogue.ready()
  expect([catalogue.defaultModel(), catalogue.defaultEmbeddingModel()]).toEqual(['talker', 'both'])
  const together = await createCatalogue([
    createLister('a', both),
    createLister('b', async () => [model('own', false)]),
  ])
  await together.ready()
  expect(together.defaultEmbeddingModel()).toBe('own')
})

test('an alias resolves to its model unless another model has that id', async () => {
  const aliased = (id: string, alias: string) => ({ ...model(id), aliases: [alias] })
  const first: List = async () => [aliased('x:latest', 'x'), aliased('y:latest', 'y'), model('y')]
  const second: List = async () => [model('x')]
  const alone = await createCatalogue([createLister('a', first)])
  await alone.ready()
  expect([alone.route('x').model, alone.route('a/x').model]).toEqual(['x:latest', 'x:latest'])
  expect([alone.route('y').model, alone.find('a/y')?.backendId]).toEqual(['y', 'y'])
  expect(alone.list().map(({ id }) => id)).toEqual(['x:latest', 'y:latest', 'y'])
  const together = await createCatalogue([createLister('a', first), createLister('b', second)])
  await together.ready()
  expect([together.route('x').backend.name, together.route('a/x').model]).toEqual(['b', 'x:latest'])
})
