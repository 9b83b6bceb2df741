/** Tests how settings are read from environment variables, and the errors and warnings for invalid ones. */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, parseConfig } from '../../src/config/parse.ts'
import { Settings, settingNames } from '../../src/config/settings.ts'
import { mintKey } from '../../src/lib/api-key.ts'

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

describe('without environment variables', () => {
  test('the server listens on loopback with the mock backend and SQLite in ./data', async () => {
    expect(await parseConfig({})).toEqual({
      warnings: [],
      config: {
        consoleProviders: 'any',
        server: {
          port: 3000,
          host: '127.0.0.1',
          publicUrl: undefined,
          isDevelopment: false,
          allowedHosts: [],
          trustedProxies: [],
        },
        forwardedAuth: undefined,
        adminEmails: [],
        logLevel: 'info',
        dataDir: resolve('data'),
        s3: undefined,
        secret: undefined,
        formerSecrets: [],
        parentKey: undefined,
        providers: [{ kind: 'mock', name: 'mock' }],
        defaultModel: undefined,
        mcp: [],
        prices: { configured: {}, file: undefined },
        hooks: undefined,
        usageRetentionDays: 30,
        defaultEmbeddingModel: undefined,
        limits: {
          parent: 600,
          agent: 120,
          agentAddress: 60,
          authFailures: 30,
          uploadToken: 600,
          agents: 1_000,
          streams: { parent: 50, agent: 64, address: 16 },
          maxBodyBytes: 20 * 1024 * 1024,
          maxAgentBodyBytes: 2 * 1024 * 1024,
          maxFileBytes: 2 * 1024 ** 3,
          maxUploadBytes: 5 * 1024 ** 3,
          storageQuotaBytes: 50 * 1024 ** 3,
          backendAttempts: 3,
          budgetOutputTokens: 4_096,
        },
        budgets: { minOutputTokens: 256, waitMs: 5_000, timeZone: 'UTC', defaultAgentNanoUsd: undefined },
        conversion: {
          wallMs: 600_000,
          memoryBytes: 2 * 1024 ** 3,
          searchPath: '/usr/local/bin:/usr/bin:/bin',
          tries: 3,
        },
        webhooks: { allow: [], isAllowed: true, ofOperator: [] },
        widget: { connectOrigins: [], isProviderKeyAllowed: false },
        uploads: { isSynced: true, expirySeconds: 86_400 },
        conversations: {
          isAllowed: true,
          maxDays: 365,
          maxBytes: 10 * 1024 ** 3,
          withoutAgent: 'off',
          withoutAgentDays: 30,
          replaySeconds: 86_400,
          flushMs: 250,
          reconnectMs: 10_000,
          followers: { parent: 200, agent: 1_000, address: 20 },
        },
        breaker: { calls: 10, windowMs: 10_000, restMs: 15_000 },
        timings: {
          backendConnectMs: 5_000,
          backendFirstByteMs: 60_000,
          backendFirstEventMs: 120_000,
          backendIdleMs: 60_000,
          backendTotalMs: 600_000,
          streamMaxMs: 900_000,
          toolMs: 30_000,
          heartbeatMs: 15_000,
          bodyMs: 30_000,
          bodyIdleMs: 10_000,
          uploadIdleMs: 60_000,
          shutdownMs: 25_000,
        },
      },
    })
  })
})

describe('an empty environment variable', () => {
  test('is treated as unset', async () => {
    const blank = Object.fromEntries(settingNames.map((name) => [name, ' ']))
    expect(await parseConfig(blank)).toEqual(await parseConfig({}))
  })
})

describe('.env.example', () => {
  const listed = async () => {
    const text = await readFile(join(import.meta.dirname, '../../.env.example'), 'utf8')
    return [...text.matchAll(/^#?([A-Z][A-Z0-9_]*)=(.*)$/gm)].map(([, name = '', value = '']) => ({
      name,
      value,
    }))
  }

  test('contains every variable exactly once', async () => {
    const names = (await listed()).map(({ name }) => name)
    expect(names.toSorted()).toEqual([...settingNames].sort())
  })

  test("contains each variable's default", async () => {
    const stated = Object.fromEntries((await listed()).map(({ name, value }) => [name, value]))
    for (const [name, schema] of Object.entries(Settings.shape)) {
      const statedValue = stated[name] === '' ? undefined : schema.parse(stated[name])
      expect({ [name]: statedValue }).toEqual({ [name]: schema.parse(undefined) })
    }
  })

  test('explains each variable in the line above it', async () => {
    const lines = (await readFile(join(import.meta.dirname, '../../.env.example'), 'utf8')).split('\n')
    for (const [index, line] of lines.entries()) {
      if (/^#[A-Z][A-Z0-9_]*=/.test(line) && !line.includes('_FILE='))
        expect(lines[index - 1]).toMatch(/^# .+\.$/)
    }
  })
})

describe('an invalid setting', () => {
  test.each([
    ['PORT', ['-1', '65536', '3000.5', '0x10', 'http', '1e3']],
    ['HOST', ['two hosts', 'http://127.0.0.1']],
    ['LOG_LEVEL', ['loud', 'INFO']],
    [
      'PARLEY_PUBLIC_URL',
      ['chat.example.org', 'ftp://a.org', 'https://u:p@a.org', 'https://a.org/?q=1', 'https://a.org/#x'],
    ],
    ['PARLEY_SECRET', ['short', 'x'.repeat(31)]],
    ['PARLEY_PARENT_KEY', ['svc_short', mintKey('agent', randomBytes).text]],
    ['PARLEY_BACKEND', ['remote', 'Mock']],
    ['PARLEY_LOCAL_URL', ['127.0.0.1:11434', 'https://u@a.org', 'http://a.org?x=1', 'file:///v1']],
    ['PARLEY_LOCAL_THREADS', ['0', '1.5', 'all', '513']],
    ['PARLEY_LOCAL_CONTEXT', ['255', '8k', '1048577']],
    [
      'PARLEY_GATEWAY_URL',
      [
        'https://a.org',
        'https://a.org/v2',
        'https://u@a.org/v1',
        'https://a.org/v1?x=1',
        'a.org/v1',
        'file:///v1',
      ],
    ],
    ['PARLEY_GATEWAY_API_KEY', ['two words', 'line\nbreak', 'ünicode']],
    ['PARLEY_DEFAULT_MODEL', ['x'.repeat(201), 'tab\there']],
    ['PARLEY_DEFAULT_EMBEDDING_MODEL', ['x'.repeat(201), 'tab\there']],
    ['PARLEY_RATE_LIMIT_PARENT', ['-1', '1.5', 'off', '1000000001']],
    ['PARLEY_USAGE_RETENTION_DAYS', ['0', '1.5', 'forever', '36501']],
    ['PARLEY_MAX_BODY_BYTES', ['0', '20MiB', '268435457']],
    ['PARLEY_MAX_BODY_BYTES_AGENT', ['0', '2MiB', '268435457']],
    ['PARLEY_MAX_FILE_BYTES', ['0', '2GiB', '1099511627777']],
    ['PARLEY_STORAGE_QUOTA_BYTES', ['-1', '50GiB', '1125899906842625']],
    [
      'PARLEY_TRUSTED_PROXIES',
      [
        '10.0.0.0/33',
        '10.0.0/8',
        '010.0.0.0/8',
        '10.0.0.0/8,',
        'true',
        '1',
        'proxy.local',
        '10.0.0.0/8/8',
        '::/129',
      ],
    ],
    ['PARLEY_ALLOWED_HOSTS', ['https://a.org', 'a.org/x', 'a.org,,b.org', '*']],
    ['PARLEY_BACKEND_CONNECT_SECONDS', ['0', '-1', '5s', '86401', 'Infinity', '.5', '0.0001']],
    ['PARLEY_BACKEND_ATTEMPTS', ['0', '11']],
    ['S3_BUCKET', ['ab', 'a/b', 'two words', '-a-', 'x'.repeat(64)]],
    ['S3_PREFIX', ['/files', 'a//b', '../b', 'a/./b', 'ü/', 'x'.repeat(201)]],
    ['S3_ENDPOINT', ['127.0.0.1:9000', 'https://u:p@a.org', 'https://a.org/?q=1', 'ftp://a.org']],
    ['S3_REGION', ['eu central', 'x'.repeat(65)]],
    ['S3_FORCE_PATH_STYLE', ['yes', '1']],
    ['AWS_ACCESS_KEY_ID', ['two words', 'ünicode']],
    ['AWS_SECRET_ACCESS_KEY', ['line\nbreak']],
  ])('is rejected with an error that starts with its name: %s', async (name, values) => {
    for (const value of values) {
      const problems = await problemsOf({ [name]: value })
      expect(problems).toEqual([expect.stringMatching(new RegExp(`^${name} must be .+\\.$`))])
    }
  })

  test('is rejected with an error that does not contain its value', async () => {
    const wrong = Object.fromEntries(Object.keys(Settings.shape).map((name) => [name, 'private\tvalue']))
    const error = await parseConfig(wrong).catch((thrown: unknown) => thrown)
    expect(String(error)).not.toContain('private')
  })

  test('is reported in a single error with all other invalid settings', async () => {
    const error = await parseConfig({
      PORT: 'x',
      PARLEY_SECRET: 'short',
      PARLEY_BACKEND: 'gateway',
      PARLEY_PARENT_KEY_FILE: '/absent/key',
    }).catch((thrown: unknown) => thrown)
    expect((error as Error).message).toBe(
      [
        '4 invalid settings (see .env.example):',
        '  - PARLEY_PARENT_KEY_FILE: cannot read the file (ENOENT).',
        '  - PORT must be a whole number from 0 to 65535.',
        '  - PARLEY_SECRET must be at least 32 bytes long; `openssl rand -base64 48` generates one.',
        '  - PARLEY_GATEWAY_URL is required with PARLEY_BACKEND=gateway.',
      ].join('\n'),
    )
  })
})

describe('DATABASE_URL', () => {
  test.each([
    'postgres://u:hidden@db/parley',
    'postgresql://u@[::1]:5433/parley?sslmode=verify-full',
    'postgres:///parley?host=/var/run/postgresql',
  ])('accepts %s unchanged', async (url) => {
    expect((await configOf({ DATABASE_URL: url })).databaseUrl).toBe(url)
  })

  test.each([
    'mysql://u:hidden@db/parley',
    'postgres://u:hidden@db',
    'postgres://u:hid den@db/parley',
    'parley',
  ])('rejects %s with an error that does not contain it', async (url) => {
    const [problem, ...others] = await problemsOf({ DATABASE_URL: url })
    expect(problem).toContain('DATABASE_URL must be a URL such as postgres://')
    expect(problem).not.toMatch(/hid|mysql/)
    expect(others).toEqual([])
  })

  test('allows an S3 bucket together with PARLEY_DATA_DIR=:memory:', async () => {
    const given = {
      DATABASE_URL: 'postgres://u@db/parley',
      PARLEY_DATA_DIR: ':memory:',
      S3_BUCKET: 'parley',
      S3_REGION: 'x',
    }
    expect((await configOf(given)).s3?.bucket).toBe('parley')
  })
})

describe('the configuration', () => {
  test('accepts port 0, which selects any free port', async () => {
    expect((await configOf({ PORT: '0' })).server.port).toBe(0)
  })

  test('ignores white space around a value', async () => {
    expect((await configOf({ PORT: ' 8080\n' })).server.port).toBe(8080)
  })

  test('accepts 0 to disable a rate limit', async () => {
    expect((await configOf({ PARLEY_RATE_LIMIT_PARENT: '0' })).limits.parent).toBe(0)
  })

  test('accepts a fraction of a second', async () => {
    expect((await configOf({ PARLEY_HEARTBEAT_SECONDS: '0.25' })).timings.heartbeatMs).toBe(250)
  })

  test('resolves the data directory to an absolute path unless it is :memory:', async () => {
    expect((await configOf({ PARLEY_DATA_DIR: 'x/../y' })).dataDir).toBe(resolve('y'))
    expect((await configOf({ PARLEY_DATA_DIR: ':memory:' })).dataDir).toBe(':memory:')
  })

  test.each([
    ['https://a.org/openai/v1', 'https://a.org/openai/v1'],
    ['http://127.0.0.1:8000/v1/', 'http://127.0.0.1:8000/v1'],
    ['http://[::1]:8000/v1//', 'http://[::1]:8000/v1'],
  ])('removes trailing slashes from the gateway URL %s', async (given, url) => {
    expect(
      (await configOf({ PARLEY_BACKEND: 'gateway', PARLEY_GATEWAY_URL: given, PARLEY_GATEWAY_API_KEY: 'k' }))
        .providers,
    ).toEqual([{ kind: 'gateway', name: 'gateway', url, apiKey: 'k' }])
  })

  test.each([
    ['https://a.org', 'https://a.org'],
    ['https://a.org/', 'https://a.org'],
    ['http://a.org:8080/chat/', 'http://a.org:8080/chat'],
  ])('removes trailing slashes from the public URL %s', async (given, url) => {
    expect((await configOf({ PARLEY_PUBLIC_URL: given })).server.publicUrl).toBe(url)
  })

  test('accepts networks and addresses of trusted proxies, including IPv4-mapped IPv6 addresses', async () => {
    const { server } = await configOf({
      PARLEY_TRUSTED_PROXIES: '10.0.0.0/8, 192.0.2.7,fd00::/8,::1,::ffff:172.16.0.0/108',
    })
    expect(server.trustedProxies.map(([network, length]) => `${network}/${length}`)).toEqual([
      '10.0.0.0/8',
      '192.0.2.7/32',
      'fd00::/8',
      '::1/128',
      '172.16.0.0/12',
    ])
  })

  test('converts allowed hosts to lower case', async () => {
    const { server } = await configOf({ PARLEY_ALLOWED_HOSTS: 'Chat.Example.org, localhost:3000,[::1]:3000' })
    expect(server.allowedHosts).toEqual(['chat.example.org', 'localhost:3000', '[::1]:3000'])
  })
})

describe('a warning about settings', () => {
  test('names an unknown PARLEY_ variable and the nearest known variable but contains no value', async () => {
    const { warnings } = await parseConfig({
      PARLEY_RATELIMIT_PARENTS: '5',
      PARLEY_SECRT: 'hidden',
      OTHER: '1',
    })
    expect(warnings).toEqual([
      'PARLEY_RATELIMIT_PARENTS is not a setting and is ignored; did you mean PARLEY_RATE_LIMIT_PARENT?',
      'PARLEY_SECRT is not a setting and is ignored; did you mean PARLEY_SECRET?',
    ])
  })

  test('names unused gateway settings', async () => {
    const { warnings } = await parseConfig({ PARLEY_GATEWAY_URL: 'https://a.org/v1' })
    expect(warnings).toEqual(['PARLEY_GATEWAY_URL is ignored: it requires PARLEY_BACKEND=gateway.'])
  })
})
