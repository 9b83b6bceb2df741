/** Tests that a server survives invalid Redis replies and treats Redis as unavailable. */
import { describe, expect, test, vi } from 'vitest'
import { type FakeRedis, type Moment, startFakeRedis } from '../support/fake-redis.ts'
import { callServer, makeFolder, type RunningServer, startServer } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

async function start(env: Readonly<Record<string, string>> = {}) {
  const redis = await startFakeRedis()
  const server = await startServer({ folder: await makeFolder(), env: { REDIS_URL: redis.url, ...env } })
  await untilRedisIs(server, 'up')
  return { redis, server }
}

const untilRedisIs = (server: RunningServer, state: 'up' | 'down') =>
  expect.poll(async () => (await callServer(server.url, 'GET', '/readyz')).body.checks.redis).toBe(state)

/** Replies that violate the Redis protocol or do not match the command. */
const garbage: Readonly<Record<string, string>> = {
  'a different protocol': 'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n',
  'zero bytes': '\0'.repeat(64),
  null: '_\r\n_\r\n_\r\n',
  'an empty list': '*0\r\n',
  'a push without a type': '>1\r\n_\r\n',
  'a push without a channel': '>1\r\n$9\r\nsubscribe\r\n',
  'unsolicited replies': ':1\r\n:1\r\n_\r\n',
  'a list too long for memory': '*99999999999999\r\n',
  'a truncated string': '$100\r\nabc',
  'a string with a wrong length': '$8\r\nabc\r\n\xff\xfe*!',
  'a reply of the wrong type': '+OK\r\n',
  'numbers out of range': '*2\r\n:-5\r\n:99999999999999999999\r\n',
}

const cases: [moment: Moment, names: readonly string[]][] = [
  ['hello', ['a different protocol', 'a push without a type', 'a truncated string']],
  ['info', ['a different protocol', 'a push without a channel', 'a truncated string']],
  // Excludes one reply, because the client has already reconnected when it sends its next command.
  ['eval', Object.keys(garbage).filter((name) => name !== 'unsolicited replies')],
  [
    'subscribe',
    ['a different protocol', 'null', 'an empty list', 'a push without a type', 'a truncated string'],
  ],
  ['ping', ['a different protocol', 'a push without a channel', 'a truncated string']],
]

describe('a server continues to run if Redis sends', () => {
  test.each(cases)('an invalid reply to %s', async (moment, names) => {
    const { redis, server } = await start()
    for (const name of names) {
      redis.breakAt(moment, garbage[name] as string)
      await untilRedisIs(server, 'down')
      expect([name, (await callServer(server.url, 'GET', '/healthz')).status]).toEqual([name, 200])
      redis.restore()
      await untilRedisIs(server, 'up')
    }
    expect(server.stderr).not.toContain('an error was not caught')
    expect((await server.stop()).code).toBe(0)
  })

  test('an unsolicited reply', async () => {
    const { redis, server } = await start()
    for (const name of ['a different protocol', 'null', 'a push without a type', 'unsolicited replies']) {
      redis.breakAt('unasked', garbage[name] as string)
      await untilRedisIs(server, 'down')
      expect([name, (await callServer(server.url, 'GET', '/healthz')).status]).toEqual([name, 200])
      redis.restore()
      await untilRedisIs(server, 'up')
    }
    expect((await server.stop()).code).toBe(0)
  })
})

const countCalls = async (server: RunningServer, redis: FakeRedis) => {
  redis.breakAt('eval', garbage['a different protocol'] as string)
  const statuses: number[] = []
  for (let calls = 0; calls < 5; calls++)
    statuses.push((await callServer(server.url, 'GET', '/v1/models', server.key)).status)
  return statuses
}

test('a server enforces its share of the limits after an invalid count and logs the error once', async () => {
  const { redis, server } = await start({ PARLEY_RATE_LIMIT_PARENT: '3' })
  expect(await countCalls(server, redis)).toEqual([200, 200, 200, 429, 429])
  await untilRedisIs(server, 'down')
  expect(server.stderr.match(/each replica enforces its share of the limits/g)).toHaveLength(1)
})
