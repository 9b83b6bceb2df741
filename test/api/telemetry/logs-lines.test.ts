/** Tests which lines a request writes to the log, and that secrets are redacted. */
import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../src/config/parse.ts'
import { createRedactedLog, listSecrets } from '../../../src/telemetry/log.ts'
import { startApp } from '../../support/app.ts'
import { forgeKey } from '../../support/forge-key.ts'
import { createLineLog } from '../../support/log-lines.ts'
import { tool } from '../../support/tools.ts'

/** Returns the lines that `write` writes to a log with these settings. */
async function writeWith(
  env: Readonly<Record<string, string>>,
  write: (log: ReturnType<typeof createRedactedLog>) => void,
) {
  const { config } = await parseConfig(env)
  const lines: string[] = []
  write(createRedactedLog('debug', listSecrets(config), { write: (line) => void lines.push(line) }))
  return lines.map((line) => JSON.parse(line))
}

describe('a request', () => {
  test('is logged in one debug line with its caller, operation and status', async () => {
    const { log, lines } = createLineLog()
    const app = await startApp({}, { log })
    const { agent_id: agentId, agent_key: key } = await app.createAgent()
    const body = { messages: [{ role: 'user', content: 'Is this written down?' }] }
    const { headers } = await app.call('POST', '/v1/chat/completions', { key, body })
    await expect.poll(() => lines.filter((line) => line.includes('chat.completions')).length).toBe(1)
    const line = lines
      .map((text) => JSON.parse(text))
      .find(({ operation }) => operation === 'chat.completions')
    expect(line).toEqual({
      level: 20,
      time: expect.any(Number),
      requestId: headers.get('x-request-id'),
      operation: 'chat.completions',
      method: 'POST',
      status: 200,
      durationMs: expect.any(Number),
      tenantId: app.key.slice(4, 16),
      agentId,
      msg: 'request',
    })
  })

  test('is not logged at info level', async () => {
    const { log, lines } = createLineLog()
    log.level = 'info'
    const app = await startApp({}, { log })
    await app.call('GET', '/v1/models')
    await app.call('GET', '/v1/nowhere')
    await app.close()
    expect(lines).toEqual([])
  })

  test('has its id in each of its log lines', async () => {
    const { log, lines } = createLineLog()
    const fall = tool(() => {
      throw new Error('it fell')
    })
    const app = await startApp({ PARLEY_BACKEND_ATTEMPTS: '1' }, { log, tools: { fall } })
    const yaml = JSON.stringify({ name: 'A', instructions: 'B', tools: ['fall'] })
    const { agent_key: key } = await app.createAgent(yaml)
    const headers = { 'X-Request-Id': 'the-one' }
    for (const content of ['[[tool:fall {}]] Please do.', '[[error:500]] Please do not.']) {
      const body = { messages: [{ role: 'user', content }] }
      await app.call('POST', '/v1/chat/completions', { key, body, headers })
    }
    await expect.poll(() => lines.filter((line) => line.includes('"msg":"request"')).length).toBe(3)
    const own = lines.map((line) => JSON.parse(line)).filter(({ requestId }) => requestId === 'the-one')
    expect(own.map(({ level, msg }) => [level, msg])).toEqual([
      [40, 'tool failed'],
      [20, 'request'],
      [40, 'The model provider rejected the request (500).'],
      [20, 'request'],
    ])
  })
})

describe('a log line', () => {
  const key = forgeKey('svc_', 'c3'.repeat(28).slice(0, 55))

  test.each([
    ['a key in its message', (log) => log.info(`the key ${key} is wrong`)],
    [
      'a key in an error, its cause and its stack',
      (log) => log.warn({ err: new Error(key, { cause: new Error(key) }) }, 'oh'),
    ],
    ['a key in a nested field', (log) => log.info({ a: { b: [{ c: key }] } }, 'oh')],
    [
      'an Authorization or Cookie header',
      (log) => log.info({ headers: { authorization: key, cookie: key } }, 'oh'),
    ],
  ] satisfies [string, (log: ReturnType<typeof createRedactedLog>) => void][])(
    'does not contain %s',
    async (_what, write) => {
      const [line] = await writeWith({}, write)
      expect(JSON.stringify(line)).not.toContain(key.slice(16))
      expect(JSON.stringify(line)).toContain('…')
    },
  )

  test('does not contain any configured secret', async () => {
    const secrets = {
      PARLEY_SECRET: 'the master key of this installation',
      PARLEY_METRICS_TOKEN: 'token-for-the-metrics',
      PARLEY_GATEWAY_API_KEY: 'key"of-the-provider',
      AWS_SECRET_ACCESS_KEY: 'aws+secret/of.the(bucket)',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-key=key-of-the-collector',
    }
    const env = {
      ...secrets,
      PARLEY_BACKEND: 'gateway',
      PARLEY_GATEWAY_URL: 'http://127.0.0.1:1/v1',
      S3_BUCKET: 'bucket',
      AWS_ACCESS_KEY_ID: 'id',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:2',
      DATABASE_URL: 'postgres://parley:p%40ssw0rd-of-it@127.0.0.1/parley',
      REDIS_URL: 'redis://:word-of-redis@127.0.0.1',
    }
    const all = [
      ...Object.values(secrets).slice(0, 4),
      'key-of-the-collector',
      'p@ssw0rd-of-it',
      'word-of-redis',
    ]
    const lines = await writeWith(env, (log) => {
      for (const secret of all) log.info({ is: secret }, `what ${secret} is`)
    })
    expect(lines.map(({ is, msg }) => [is, msg])).toEqual(all.map(() => ['…', 'what … is']))
  })

  test('contains ordinary fields unchanged', async () => {
    const [line] = await writeWith({}, (log) =>
      log.info({ path: '/v1/models', hint: 'svc_…a1b2', n: 7 }, 'all is well'),
    )
    expect(line).toMatchObject({ path: '/v1/models', hint: 'svc_…a1b2', n: 7, msg: 'all is well' })
  })
})
