/** Tests the settings that control forwarded identity and administrators. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, parseConfig } from '../../src/config/parse.ts'
import { makeFolder } from '../support/process.ts'

const secret = 'Kw3pQ9+vXb/2nRtYc7LhGz5sJdM8eUfA'
const enabled = { PARLEY_TRUST_FORWARDED_AUTH: 'true' }

async function problemsOf(variables: Record<string, string>): Promise<readonly string[]> {
  const error = await parseConfig(variables).catch((thrown: unknown) => thrown)
  return error instanceof ConfigError ? error.problems : []
}

describe('forwarded identity', () => {
  test('is off by default', async () => {
    const { config } = await parseConfig({ PARLEY_TRUST_FORWARDED_AUTH: 'false' })
    expect(config.forwardedAuth).toBeUndefined()
  })

  test.each([
    ['a list of proxies', { PARLEY_TRUSTED_PROXIES: '10.0.0.1' }, undefined],
    ['a proxy secret', { PARLEY_PROXY_SECRET: secret }, secret],
    ['both', { PARLEY_TRUSTED_PROXIES: '10.0.0.1', PARLEY_PROXY_SECRET: secret }, secret],
  ])('is accepted together with %s', async (_what, more, proxySecret) => {
    const { config, warnings } = await parseConfig({ ...enabled, ...more })
    expect(warnings).toEqual([])
    expect(config.forwardedAuth).toEqual({
      proxySecret,
      headers: {
        email: 'x-email',
        user: 'x-user',
        preferredUsername: 'x-preferred-username',
        firstName: 'x-user-first-name',
        lastName: 'x-user-last-name',
        groups: 'x-groups',
      },
    })
  })

  test.each<Record<string, string>>([{}, { PARLEY_TRUSTED_PROXIES: '', PARLEY_PROXY_SECRET: ' ' }])(
    'is rejected without trusted proxies or a proxy secret: %j',
    async (more) => {
      expect(await problemsOf({ ...enabled, ...more })).toEqual([
        'PARLEY_TRUST_FORWARDED_AUTH requires PARLEY_PROXY_SECRET or PARLEY_TRUSTED_PROXIES; otherwise any client could claim any identity.',
      ])
    },
  )

  test('accepts a proxy secret from a file', async () => {
    const path = join(await makeFolder(), 'proxy')
    await writeFile(path, `${secret}\n`)
    const { config } = await parseConfig({ ...enabled, PARLEY_PROXY_SECRET_FILE: path })
    expect(config.forwardedAuth?.proxySecret).toBe(secret)
  })

  test('accepts custom header names in any letter case but not the same name twice', async () => {
    const renamed = { ...enabled, PARLEY_PROXY_SECRET: secret, PARLEY_HEADER_EMAIL: 'X-Auth-Request-Email' }
    const { config } = await parseConfig(renamed)
    expect(config.forwardedAuth?.headers.email).toBe('x-auth-request-email')
    expect(await problemsOf({ ...renamed, PARLEY_HEADER_EMAIL: 'X-User' })).toEqual([
      'Two PARLEY_HEADER_ settings name the same header, x-user; use a different header for each.',
    ])
  })

  test('causes a warning for each of its settings that is set while it is off', async () => {
    const unused = {
      PARLEY_PROXY_SECRET: secret,
      PARLEY_HEADER_USER: 'x-name',
      PARLEY_ADMIN_EMAILS: 'ada@example.org',
    }
    const { warnings } = await parseConfig(unused)
    expect(warnings).toEqual(
      Object.keys(unused).map((name) => `${name} is ignored: it requires PARLEY_TRUST_FORWARDED_AUTH=true.`),
    )
  })
})

test('PARLEY_ADMIN_EMAILS is trimmed and converted to lower case and to Unicode NFC', async () => {
  const { config } = await parseConfig({
    ...enabled,
    PARLEY_PROXY_SECRET: secret,
    PARLEY_ADMIN_EMAILS: ' Ada@Example.ORG,zoe\u0308@example.org',
  })
  expect(config.adminEmails).toEqual(['ada@example.org', 'zo\u00eb@example.org'])
})

test.each([
  ['PARLEY_TRUST_FORWARDED_AUTH', ['yes', '1', 'TRUE']],
  ['PARLEY_PROXY_SECRET', ['short', 'x'.repeat(31)]],
  ['PARLEY_HEADER_EMAIL', ['X_Email', 'x email', 'x-email:', 'é']],
  ['PARLEY_ADMIN_EMAILS', ['ada', 'ada@example.org,,', '@example.org', 'a b@example.org']],
])('an invalid value of %s is rejected with an error that starts with that name', async (name, values) => {
  for (const value of values) {
    expect(await problemsOf({ [name]: value })).toEqual([
      expect.stringMatching(new RegExp(`^${name} must be .+\\.$`)),
    ])
  }
})
