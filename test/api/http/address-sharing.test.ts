/** Tests the warnings about client addresses that many agent keys or visitors share. */
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createLineLog } from '../../support/log-lines.ts'

async function start(env: Readonly<Record<string, string>> = {}) {
  const { log, lines } = createLineLog()
  const clock = createFakeClock()
  const app = await startApp(env, { log, clock })
  const countWarnings = () => lines.filter((line) => line.includes('PARLEY_TRUSTED_PROXIES')).length
  const readCheck = async () => {
    const { status, body } = await app.call('GET', '/readyz')
    return [status, body.status, body.checks.addresses]
  }
  return { app, clock, countWarnings, readCheck }
}

async function callWithKeys(app: TestApp, count: number): Promise<void> {
  for (let made = 0; made < count; made++) {
    const { agent_key: key } = await app.createAgent()
    await app.call('GET', '/v1/models', { key })
  }
}

/** Sends one request for each of `count` visitors behind a proxy, all with the same agent key. */
async function callThroughProxy(app: TestApp, count: number): Promise<void> {
  const { agent_key: key } = await app.createAgent()
  for (let visitor = 0; visitor < count; visitor++)
    await app.call('GET', '/v1/models', { key, headers: { 'X-Forwarded-For': `192.0.2.${visitor}` } })
}

describe.each([
  ['ten agent keys', callWithKeys],
  ['ten visitors behind a proxy that is not trusted', callThroughProxy],
])('%s at one address', (_who, call) => {
  test('cause one log warning per hour and are reported by /readyz', async () => {
    const { app, clock, countWarnings, readCheck } = await start()
    await call(app, 9)
    expect([countWarnings(), await readCheck()]).toEqual([0, [200, 'ready', undefined]])
    await call(app, 10)
    expect([countWarnings(), await readCheck()]).toEqual([1, [200, 'ready', 'shared']])
    clock.advance(3_600)
    expect(await readCheck()).toEqual([200, 'ready', undefined])
    await call(app, 10)
    expect(countWarnings()).toBe(2)
  })
})

test('visitors behind a trusted proxy do not share an address', async () => {
  const { app, countWarnings } = await start({ PARLEY_TRUSTED_PROXIES: '127.0.0.0/8' })
  await callThroughProxy(app, 20)
  expect(countWarnings()).toBe(0)
})

test('the default stream limits are 50 per parent key, 64 per agent and 16 per address', async () => {
  const { app } = await start()
  expect(app.service.deps.config.limits.streams).toEqual({ parent: 50, agent: 64, address: 16 })
})
