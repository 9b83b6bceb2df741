/** Tests how the `PARLEY_CONFIG` file can refer to variables, and that errors never contain its values. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in the file use this syntax
import { describe, expect, test } from 'vitest'
import { gateway, parseFile, problemsOf, providersOf, writeConfigFile } from '../support/config-file.ts'

describe('a variable reference in the configuration file', () => {
  const file = (key: string) => `providers:\n  a:\n    url: https://a.org/v1\n    api_key: ${key}\n`
  const keyOf = async (key: string, env: Record<string, string> = {}) =>
    (await providersOf(file(key), env)).map((provider) => 'apiKey' in provider && provider.apiKey)[0]

  test.each([
    ['${KEY}', 'secret'],
    ['Bearer-${KEY}.${_k2}', 'Bearer-secret.${KEY}'],
    ['$${KEY}', '${KEY}'],
    ['$$${KEY}', '$${KEY}'],
    ['$KEY', '$KEY'],
    ['$', '$'],
    ['"{}"', '{}'],
  ])('written as %s expands to %s', async (written, read) => {
    expect(await keyOf(written, { KEY: ' secret\n', _k2: '${KEY}' })).toBe(read)
  })

  test('may be part of any string and refer to a variable that is set through its _FILE form', async () => {
    const env = {
      PARLEY_GATEWAY_API_KEY_FILE: await writeConfigFile('from-file\n'),
      HOST_NAME: 'a.org',
      WHAT: 'gateway',
    }
    const text =
      'providers: { a: { kind: "${WHAT}", url: "https://${HOST_NAME}/v1", api_key: "${PARLEY_GATEWAY_API_KEY}" } }'
    expect(await providersOf(text, env)).toEqual([gateway('a', { apiKey: 'from-file' })])
  })

  test('prevents the warning that the variable is ignored', async () => {
    const env = { PARLEY_FAR_KEY: 'k', PARLEY_GATEWAY_API_KEY: 'k', PARLEY_NEAR_KEY: 'k' }
    const { warnings } = await parseFile(file('${PARLEY_FAR_KEY}${PARLEY_GATEWAY_API_KEY}'), env)
    expect(warnings).toEqual([expect.stringMatching(/^PARLEY_NEAR_KEY is not a setting/)])
  })

  test.each([
    ['${NOT_SET}', 'refers to NOT_SET, which is not set'],
    ['${BLANK}', 'refers to BLANK, which is not set'],
    ['${constructor}', 'refers to constructor, which is not set'],
    ['${KEY', 'contains ${ without a variable name; write $${ for a literal ${'],
    ['"${}"', 'contains ${ without a variable name; write $${ for a literal ${'],
    ['"${1}"', 'contains ${ without a variable name; write $${ for a literal ${'],
    ['"${KEY:-x}"', 'contains ${ without a variable name; write $${ for a literal ${'],
  ])('is rejected if it is %s', async (written, problem) => {
    expect(await problemsOf(file(written), { KEY: 'secret', BLANK: ' ' })).toEqual([
      `<file>: providers.a.api_key: ${problem} (line 4, column 5).`,
    ])
  })
})

describe('a configuration error', () => {
  test.each([
    ['in a URL', 'providers: { a: { url: "https://u:hidden@a.org/v1" } }'],
    ['in a key', 'providers: { a: { url: https://a.org/v1, api_key: "hidden key" } }'],
    ['next to a reference', 'providers: { a: { url: https://a.org/v1, api_key: "hidden${NO}" } }'],
    ['in a kind', 'providers: { a: { kind: hidden } }'],
    ['instead of a provider', 'providers: { a: hidden }'],
    ['after a colon without a space', 'providers: { a: { url: https://a.org/v1, api_key:hidden } }'],
    ['at the start of a block of text', 'providers:\n  a:\n    api_key: |hidden\n'],
    ['in quotes that do not close', 'providers:\n  a:\n    api_key: "hidden\n'],
    ['in an invalid escape', 'providers: { a: { api_key: "\\xhidden" } }'],
    ['on a separate line', 'providers:\n  a:\n    url: https://a.org/v1\n    hidden\n'],
    ['after the end of the mapping', 'providers: {}\nhidden\n'],
    ['as an alias', 'providers: { a: { api_key: *hidden } }'],
    ['from the environment', 'providers: { a: { url: "${KEY}", api_key: "${KEY} ${KEY}" } }'],
  ])('never contains a value %s', async (_where, text) => {
    const problems = await problemsOf(text, { KEY: 'hidden' })
    expect(problems.length).toBeGreaterThan(0)
    expect(problems.join()).not.toContain('hidden')
  })
})
