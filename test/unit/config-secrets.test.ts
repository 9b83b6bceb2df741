/** Tests how secret settings are read from environment variables and files. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ConfigError, parseConfig } from '../../src/config/parse.ts'
import { mintKey } from '../../src/lib/api-key.ts'

const SECRET = 'a master key that is certainly longer than 32 bytes'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-config-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function configOf(variables: Record<string, string>) {
  return (await parseConfig(variables)).config
}

async function problemsOf(variables: Record<string, string>): Promise<readonly string[]> {
  const error = await parseConfig(variables).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(ConfigError)
  return (error as ConfigError).problems
}

describe('a secret setting', () => {
  test.each([
    ['PARLEY_SECRET', SECRET, 'secret'],
    ['PARLEY_PARENT_KEY', mintKey('parent', randomBytes).text, 'parentKey'],
  ] as const)(
    'is read, without the trailing newline, from the file in %s_FILE',
    async (name, text, field) => {
      const path = join(folder, field)
      await writeFile(path, `${text}\n`)
      expect((await configOf({ [`${name}_FILE`]: path }))[field]).toBe(text)
      expect((await configOf({ [name]: text }))[field]).toBe(text)
    },
  )
})

describe('a secret setting in a file', () => {
  test("may be the gateway's key", async () => {
    const path = join(folder, 'gateway')
    await writeFile(path, 'gateway-key')
    const { providers } = await configOf({
      PARLEY_BACKEND: 'gateway',
      PARLEY_GATEWAY_URL: 'https://a.org/v1',
      PARLEY_GATEWAY_API_KEY_FILE: path,
    })
    expect(providers).toMatchObject([{ apiKey: 'gateway-key' }])
  })

  test('is rejected if it is also set directly', async () => {
    const path = join(folder, 'both')
    await writeFile(path, SECRET)
    expect(await problemsOf({ PARLEY_SECRET: SECRET, PARLEY_SECRET_FILE: path })).toEqual([
      'PARLEY_SECRET and PARLEY_SECRET_FILE are both set; keep one of them.',
    ])
  })

  test('is rejected if the file is empty', async () => {
    const path = join(folder, 'empty')
    await writeFile(path, '\n')
    expect(await problemsOf({ PARLEY_SECRET_FILE: path })).toEqual([
      'PARLEY_SECRET_FILE refers to an empty file; write the secret to it.',
    ])
  })

  test('is validated, and the error does not contain the secret', async () => {
    const path = join(folder, 'short')
    await writeFile(path, 'too short')
    const [problem] = await problemsOf({ PARLEY_SECRET_FILE: path })
    expect(problem).toContain('PARLEY_SECRET must be at least 32 bytes')
    expect(problem).not.toContain('too short')
  })
})
