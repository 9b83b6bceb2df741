/** Tests which pages may call the API with an agent key. */
import { expect, test } from 'vitest'
import { matchesOrigin } from '../../../src/agents/page-origin.ts'
import { GREETER, startApp, type TestApp } from '../../support/app.ts'

const body = { model: 'mock', messages: [{ role: 'user', content: 'Hi' }] }

const chat = (app: TestApp, key: string, headers: Record<string, string>) =>
  app.call('POST', '/v1/chat/completions', { key, body, headers })

test('an agent with embed.origins rejects requests from other origins with 403', async () => {
  const app = await startApp()
  const { agent_key: key } = await app.createAgent(
    `${GREETER}embed: { origins: ["https://*.shop.example"] }\n`,
  )
  expect(await chat(app, key, { Origin: 'https://www.shop.example' })).toMatchObject({ status: 200 })
  expect(await chat(app, key, { Origin: app.url })).toMatchObject({ status: 200 })
  expect(await chat(app, key, {})).toMatchObject({ status: 200 })
  for (const origin of ['https://shop.example', 'https://evil.example', 'null', 'http://www.shop.example']) {
    expect(await chat(app, key, { Origin: origin })).toMatchObject({
      status: 403,
      body: { error: { code: 'insufficient_permissions' } },
    })
  }
  const me = await app.call('GET', '/v1/agents/me', { key, headers: { Origin: 'https://evil.example' } })
  expect(me.status).toBe(403)
  const rpc = await app.fetch(`${app.url}/trpc/agents.me`, {
    headers: { Authorization: `Bearer ${key}`, Origin: 'https://evil.example' },
  })
  expect(rpc.status).toBe(403)
})

test('a page from any origin can call an agent without embed.origins', async () => {
  const app = await startApp()
  const { agent_key: key } = await app.createAgent(GREETER)
  expect(await chat(app, key, { Origin: 'https://anywhere.example' })).toMatchObject({ status: 200 })
})

test.each([
  ['https://a.example', 'https://a.example', true],
  ['https://a.example:443', 'https://a.example', true],
  ['http://a.example', 'https://a.example', true],
  ['https://a.example', 'http://a.example', false],
  ['https://a.example', 'https://a.example:8443', false],
  ['HTTPS://A.Example', 'https://a.example', true],
  ['https://*.a.example', 'https://b.c.a.example', true],
  ['https://*.a.example', 'https://evila.example', false],
  ['https://a.example', 'null', false],
])('embed.origins %s allows a page from %s: %s', (listed, origin, isListed) => {
  expect(matchesOrigin(listed, origin)).toBe(isListed)
})
