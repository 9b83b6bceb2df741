/** Tests the settings for local runners and in-process models. */
import { dirname, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type ConfigError, parseConfig } from '../../src/config/parse.ts'
import { problemsOf, providersOf, writeConfigFile } from '../support/config-file.ts'

const LOCAL = { PARLEY_BACKEND: 'local' }
const URL_RULE =
  'must be an http or https URL such as http://127.0.0.1:11434, without credentials, query or fragment'

async function providersOfEnvironment(env: Record<string, string>) {
  const { config, warnings } = await parseConfig({ ...LOCAL, ...env })
  expect(warnings).toEqual([])
  return config.providers
}

const runner = (url: string, name = 'local') => [{ kind: 'local', name, url }]
const model = (path: string, more: object = {}) => [
  { kind: 'local-model', name: 'local', path, threads: undefined, contextTokens: undefined, ...more },
]

describe('the environment variables', () => {
  test.each<[given: string | undefined, url: string]>([
    [undefined, 'http://127.0.0.1:11434/v1'],
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080/v1'],
    ['http://127.0.0.1:8080/v1/', 'http://127.0.0.1:8080/v1'],
    ['https://runner.org/ollama', 'https://runner.org/ollama/v1'],
  ])('can configure a runner: PARLEY_LOCAL_URL=%s gives %s', async (given, url) => {
    expect(await providersOfEnvironment(given === undefined ? {} : { PARLEY_LOCAL_URL: given })).toEqual(
      runner(url),
    )
  })

  test('can configure an in-process model with a path relative to the working directory', async () => {
    expect(await providersOfEnvironment({ PARLEY_LOCAL_MODEL: 'models/x.gguf' })).toEqual(
      model(resolve('models/x.gguf')),
    )
    const settings = {
      PARLEY_LOCAL_MODEL: '/models/x.gguf',
      PARLEY_LOCAL_THREADS: '4',
      PARLEY_LOCAL_CONTEXT: '4096',
    }
    expect(await providersOfEnvironment(settings)).toEqual(
      model('/models/x.gguf', { threads: 4, contextTokens: 4096 }),
    )
  })

  test('are rejected if they configure both a runner and an in-process model', async () => {
    const both = { ...LOCAL, PARLEY_LOCAL_URL: 'http://a.org', PARLEY_LOCAL_MODEL: 'x.gguf' }
    const error = await parseConfig(both).catch((thrown: unknown) => thrown)
    expect((error as ConfigError).problems).toEqual([
      'PARLEY_LOCAL_URL and PARLEY_LOCAL_MODEL are both set; keep one of them.',
    ])
  })

  test('cause a warning for each unused setting', async () => {
    const warningsOf = async (env: Record<string, string>) => (await parseConfig(env)).warnings
    expect(await warningsOf({ PARLEY_LOCAL_URL: 'http://a.org' })).toEqual([
      'PARLEY_LOCAL_URL is ignored: it requires PARLEY_BACKEND=local.',
    ])
    expect(await warningsOf({ ...LOCAL, PARLEY_LOCAL_THREADS: '2', PARLEY_LOCAL_CONTEXT: '512' })).toEqual([
      'PARLEY_LOCAL_THREADS is ignored: it requires PARLEY_LOCAL_MODEL.',
      'PARLEY_LOCAL_CONTEXT is ignored: it requires PARLEY_LOCAL_MODEL.',
    ])
  })
})

describe('the configuration file', () => {
  const file = (text: string) => `providers:\n  near: ${text}\n`

  test.each([
    ['{ kind: local }', 'http://127.0.0.1:11434/v1'],
    ['{ kind: local, url: "http://127.0.0.1:8080" }', 'http://127.0.0.1:8080/v1'],
  ])('can configure a runner with any name: %s', async (text, url) => {
    expect(await providersOf(file(text))).toEqual(runner(url, 'near'))
  })

  test('can configure an in-process model with a path relative to the file and numbers from variables', async () => {
    const text = file(`{ kind: local, model: x.gguf, threads: 2, context: "\${TOKENS}" }`)
    const path = await writeConfigFile(text)
    const { config } = await parseConfig({ PARLEY_CONFIG: path, TOKENS: '1024' })
    expect(config.providers).toEqual(
      model(join(dirname(path), 'x.gguf'), { name: 'near', threads: 2, contextTokens: 1024 }),
    )
  })

  test('can add a runner to the one from the environment if their names differ', async () => {
    const text = 'providers: { local: { kind: local } }'
    expect(await problemsOf(text, LOCAL)).toEqual([
      '<file>: providers.local: is already taken by the provider that PARLEY_BACKEND=local configures (line 1, column 14).',
    ])
    expect(await providersOf(file('{ kind: local }'), LOCAL)).toHaveLength(2)
  })

  test.each([
    ['{ kind: local, url: x }', `url: ${URL_RULE} (line 2, column 24)`],
    [
      '{ kind: local, url: "http://a.org", model: x }',
      'model: cannot be combined with url; keep one of them (line 2, column 45)',
    ],
    ['{ kind: local, model: "" }', 'model: must not be empty (line 2, column 24)'],
    ['{ kind: local, model: 5 }', 'model: must be a string; put it in quotes (line 2, column 24)'],
    ['{ kind: local, threads: 2 }', 'threads: requires model (line 2, column 24)'],
    [
      '{ kind: local, model: x, threads: 0 }',
      'threads: must be a whole number from 1 to 512 (line 2, column 34)',
    ],
    [
      '{ kind: local, model: x, context: all }',
      'context: must be a whole number from 256 to 1048576 (line 2, column 34)',
    ],
    [
      '{ kind: local, api_key: x }',
      'api_key: is not a known key; the closest match is kind (line 2, column 24)',
    ],
  ])('is rejected with an error for %s', async (text, problem) => {
    expect(await problemsOf(file(text))).toEqual([`<file>: providers.near.${problem}.`])
  })
})
