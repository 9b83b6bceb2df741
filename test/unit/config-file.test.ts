/** Tests which providers the `PARLEY_CONFIG` file sets, and the error for each invalid value in it. */
import { join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type ConfigError, parseConfig } from '../../src/config/parse.ts'
import { gateway, parseFile, problemsOf, providersOf, writeConfigFile } from '../support/config-file.ts'
import { makeFolder } from '../support/process.ts'

const URL_RULE = 'must be an http or https URL that ends in /v1, without credentials, query or fragment'
const NAME_RULE =
  'a name must be 1 to 32 lowercase letters, digits, - and _, and start with a letter or digit'

const mock = (name = 'mock') => ({ kind: 'mock', name })
const entry = (name: string) => `  ${name}: { url: https://${name}.org/v1 }\n`

describe('the configured providers', () => {
  test('are read from the file in order, with their keys', async () => {
    const text = `# ours
providers:
  near:
    url: http://127.0.0.1:8000/v1/
  far:
    kind: gateway
    url: https://far.org/openai/v1
    api_key: literal
  play: { kind: mock }
`
    expect(await providersOf(text)).toEqual([
      { kind: 'gateway', name: 'near', url: 'http://127.0.0.1:8000/v1', apiKey: undefined },
      { kind: 'gateway', name: 'far', url: 'https://far.org/openai/v1', apiKey: 'literal' },
      mock('play'),
    ])
  })

  test.each<[what: string, text: string, env: Record<string, string>, names: object[]]>([
    ['those in the file if PARLEY_BACKEND is not set', `providers:\n${entry('a')}`, {}, [gateway('a')]],
    [
      'those from the environment before those in the file',
      `providers:\n${entry('a')}`,
      { PARLEY_BACKEND: 'mock' },
      [mock(), gateway('a')],
    ],
    [
      'a gateway from the environment before those in the file',
      `providers:\n${entry('a')}`,
      { PARLEY_BACKEND: 'gateway', PARLEY_GATEWAY_URL: 'https://gateway.org/v1' },
      [gateway('gateway'), gateway('a')],
    ],
    ['the mock provider if the file does not contain any', 'providers: {}', {}, [mock()]],
    ['the mock provider if the file has no providers section', '{}', {}, [mock()]],
    [
      'allowed to be called mock or gateway if the environment sets no backend',
      'providers: { mock: { kind: mock }, gateway: { url: https://gateway.org/v1 } }',
      {},
      [mock(), gateway('gateway')],
    ],
  ])('are %s', async (_what, text, env, providers) => {
    expect(await providersOf(text, env)).toEqual(providers)
  })

  test.each(['0', 'a-b_c', 'x'.repeat(32)])('may be named %s', async (name) => {
    expect(await providersOf(`providers: { "${name}": { kind: mock } }`)).toEqual([mock(name)])
  })

  test('can be read from a file with a byte order mark and Windows line endings', async () => {
    expect(await providersOf(`\uFEFFproviders:\r\n${entry('a').replace('\n', '\r\n')}`)).toEqual([
      gateway('a'),
    ])
  })
})

test('the path in PARLEY_CONFIG is relative to the working directory', async () => {
  const path = relative(process.cwd(), await writeConfigFile(`providers:\n${entry('a')}`))
  expect((await parseConfig({ PARLEY_CONFIG: path })).config.providers).toEqual([gateway('a')])
})

describe('the error for an invalid configuration file', () => {
  const provider = (text: string) => `providers:\n  a: ${text}\n`
  const fine = 'url: https://a.org/v1'

  test.each<[what: string, text: string, problem: string]>([
    ['a list as the document', '- a\n', 'Must be one YAML mapping of keys to values (line 1, column 1)'],
    ['an empty document', '# nothing\n', 'Must be one YAML mapping of keys to values (line 1, column 1)'],
    [
      'an unknown section',
      '\nprovider: {}\n',
      'provider: is not a known key; the closest match is providers (line 2, column 1)',
    ],
    [
      'a list of providers',
      'providers: []\n',
      'providers: must be a mapping of names to providers (line 1, column 1)',
    ],
    [
      'an empty section',
      'providers:\n',
      'providers: must be a mapping of names to providers (line 1, column 1)',
    ],
    ['a provider as text', provider('https://a.org/v1'), 'providers.a: must be a mapping (line 2, column 3)'],
    ['an empty provider', provider(''), 'providers.a: must be a mapping (line 2, column 3)'],
    ['a missing URL', provider('{ api_key: k }'), 'providers.a.url: is missing (line 2, column 3)'],
    ['an invalid URL', provider('{ url: https://a.org }'), `providers.a.url: ${URL_RULE} (line 2, column 8)`],
    [
      'a URL with a password',
      provider('{ url: https://u:p@a.org/v1 }'),
      `providers.a.url: ${URL_RULE} (line 2, column 8)`,
    ],
    [
      'a number as a key',
      provider(`{ ${fine}, api_key: 5 }`),
      'providers.a.api_key: must be a string; put it in quotes (line 2, column 31)',
    ],
    [
      'an empty key',
      provider(`{ ${fine}, api_key: }`),
      'providers.a.api_key: must be a string; put it in quotes (line 2, column 31)',
    ],
    [
      'a key with a space',
      provider(`{ ${fine}, api_key: a b }`),
      'providers.a.api_key: must be visible ASCII characters only (line 2, column 31)',
    ],
    [
      'an unknown field',
      provider(`{ ${fine}, apikey: k }`),
      'providers.a.apikey: is not a known key; the closest match is api_key (line 2, column 31)',
    ],
    [
      'a URL for a mock',
      provider(`{ kind: mock, ${fine} }`),
      'providers.a.url: is not a known key; the closest match is kind (line 2, column 20)',
    ],
    [
      'an unknown kind',
      provider(`{ kind: remote, ${fine} }`),
      'providers.a.kind: must be gateway, local or mock (line 2, column 8)',
    ],
    [
      'a number as a kind',
      provider('{ kind: 1 }'),
      'providers.a.kind: must be gateway, local or mock (line 2, column 8)',
    ],
    [
      'a name in capitals',
      'providers:\n  Open: { kind: mock }\n',
      `providers.Open: ${NAME_RULE} (line 2, column 3)`,
    ],
    [
      'a name with a slash',
      'providers: { a/b: { kind: mock } }',
      `providers["…"]: ${NAME_RULE} (line 1, column 14)`,
    ],
    [
      'a name with a leading dash',
      'providers: { -a: { kind: mock } }',
      `providers.-a: ${NAME_RULE} (line 1, column 14)`,
    ],
    [
      'a name that is too long',
      `providers: { ${'x'.repeat(33)}: { kind: mock } }`,
      `providers.${'x'.repeat(33)}: ${NAME_RULE} (line 1, column 14)`,
    ],
    [
      'the reserved name of agents',
      'providers: { agent: { kind: mock } }',
      'providers.agent: is a reserved name: model ids that start with agent/ refer to agents (line 1, column 14)',
    ],
    [
      'a repeated name',
      `providers:\n${entry('a')}${entry('a')}`,
      'providers.a: occurs more than once (line 3, column 3)',
    ],
    [
      'an anchor',
      'providers: &a {}\n',
      'providers: YAML anchors are not allowed; quote text that starts with & (line 1, column 12)',
    ],
    [
      'a tag',
      'providers: !!map {}\n',
      'providers: YAML tags are not allowed; quote text that starts with ! (line 1, column 12)',
    ],
    ['two documents', '{}\n---\n{}\n', 'Must be one YAML document, not several (line 2, column 1)'],
    ['invalid YAML', 'providers: [\n', 'Invalid YAML (line 2, column 1)'],
  ])('reports the position of %s', async (_what, text, problem) => {
    expect(await problemsOf(text)).toEqual([`<file>: ${problem}.`])
  })

  test.each([
    ['mock', {}],
    ['gateway', { PARLEY_GATEWAY_URL: 'https://gateway.org/v1' }],
  ])('reports the position of a provider name that the environment already uses: %s', async (name, env) => {
    const problem = `is already taken by the provider that PARLEY_BACKEND=${name} configures (line 1, column 14)`
    expect(
      await problemsOf(`providers: { ${name}: { kind: mock } }`, { PARLEY_BACKEND: name, ...env }),
    ).toEqual([`<file>: providers.${name}: ${problem}.`])
  })

  test('lists every problem in the environment and, from top to bottom, in the file', async () => {
    const text = `providers:
  A:
    url: nowhere
    api_key: \${MISSING_KEY}
  b:
    kind: moc
    key: k
  c:
    token: k
mpc: {}
`
    expect(await problemsOf(text, { PORT: 'x' })).toEqual([
      'PORT must be a whole number from 0 to 65535.',
      `<file>: providers.A: ${NAME_RULE} (line 2, column 3).`,
      `<file>: providers.A.url: ${URL_RULE} (line 3, column 5).`,
      '<file>: providers.A.api_key: refers to MISSING_KEY, which is not set (line 4, column 5).',
      '<file>: providers.b.kind: must be gateway, local or mock (line 6, column 5).',
      '<file>: providers.c.url: is missing (line 8, column 3).',
      '<file>: providers.c.token: is not a known key; the closest match is kind (line 9, column 5).',
      expect.stringMatching(
        /^<file>: mpc: is not a known key; the closest match is mcp \(line 10, column 1\)\.$/,
      ),
    ])
  })

  test('contains the system error code if the file does not exist or is a directory', async () => {
    const folder = await makeFolder()
    for (const [path, reason] of [
      [join(folder, 'absent.yaml'), 'ENOENT'],
      [folder, 'EISDIR'],
    ] as const) {
      const error = await parseConfig({ PARLEY_CONFIG: path }).catch((thrown: unknown) => thrown)
      expect((error as ConfigError).problems).toEqual([`PARLEY_CONFIG: cannot read the file (${reason}).`])
    }
  })
})

describe("the operator's webhooks", () => {
  const secret = `whsec_${Buffer.alloc(32).toString('base64')}`
  const webhook = (more: object) =>
    JSON.stringify({
      webhooks: [{ url: 'http://10.0.0.1:8080/hook', secret, events: ['budget.*'], ...more }],
    })

  test('may have private URLs and a secret in a variable', async () => {
    const text = webhook({ secret: `\${HOOK_SECRET}` })
    const { config } = await parseFile(text, { HOOK_SECRET: secret })
    expect(config.webhooks.ofOperator).toEqual([
      { url: 'http://10.0.0.1:8080/hook', secret, events: ['budget.*'] },
    ])
  })

  test.each<[string, object, RegExp]>([
    ['a URL that is not http', { url: 'ftp://example.org/' }, /webhooks\[0\]\.url: must be an http/],
    [
      'a short secret',
      { secret: 'whsec_c2hvcnQ=' },
      /webhooks\[0\]\.secret: must be a secret such as whsec_/,
    ],
    [
      'an unknown event',
      { events: ['turn.failed'] },
      /webhooks\[0\]\.events\[0\]: must be one of \*, budget/,
    ],
    ['no events', { events: [] }, /must contain at least one event/],
    ['an unknown field', { agent: 'a' }, /is not a known key/],
  ])('are rejected with %s', async (_what, more, problem) => {
    expect(await problemsOf(webhook(more))).toEqual([expect.stringMatching(problem)])
  })

  test('are rejected with the same URL twice', async () => {
    const same = { url: 'https://example.org/', secret, events: ['*'] }
    const problems = await problemsOf(JSON.stringify({ webhooks: [same, same] }))
    expect(problems).toEqual([expect.stringMatching(/is used by another webhook/)])
  })
})
