/** Tests how an agent's definition is replaced, with and without If-Match. */
import { describe, expect, test } from 'vitest'
import { FULL_DEFINITION } from '../../support/agents.ts'
import { GREETER, startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

const chat = (app: TestApp, key: string) =>
  app.call('POST', '/v1/chat/completions', { key, body: { messages: [{ role: 'user', content: 'hi' }] } })

describe('replacing an agent', () => {
  test('returns the new name, model, tools and version, and keeps the id, key and creation time', async () => {
    const clock = createFakeClock(1_800_000_000)
    const app = await startApp({}, { clock })
    const { agent_id, agent_key } = await app.createAgent(FULL_DEFINITION)
    clock.advance(100)
    const { status, headers, body } = await app.call('PUT', `/v1/agents/${agent_id}`, {
      body: { yaml: 'name: Other\ninstructions: Be other.\ntools: [find]\n' },
    })
    expect(status).toBe(200)
    expect(headers.get('etag')).toBe('"2"')
    expect(body).toEqual({
      agent_id,
      agent_key,
      parent_key: app.key.slice(0, 16),
      name: 'Other',
      model: 'mock',
      tools: ['find'],
      updated: true,
      version: 2,
    })
    const read = await app.call('GET', `/v1/agents/${agent_id}`)
    expect(read.body).toMatchObject({ created_at: 1_800_000_000, instructions: 'Be other.', version: 2 })
    expect(read.body.definition).toEqual({ name: 'Other', model: 'mock', temperature: 0.7, tools: ['find'] })
    expect((await chat(app, agent_key)).status).toBe(200)
  })

  test('changes the greeting in GET /v1/agents/me', async () => {
    const app = await startApp()
    const { agent_id, agent_key } = await app.createAgent(`${GREETER}embed: { greeting: Hi }\n`)
    const greeting = async () => (await app.call('GET', '/v1/agents/me', { key: agent_key })).body.greeting
    expect(await greeting()).toBe('Hi')
    await app.call('PUT', `/v1/agents/${agent_id}`, { body: { yaml: GREETER } })
    expect(await greeting()).toBe(null)
  })

  test('with an invalid definition returns 400 and changes nothing', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const before = await app.call('GET', `/v1/agents/${agent_id}`)
    const { status } = await app.call('PUT', `/v1/agents/${agent_id}`, { body: { yaml: 'name: X\n' } })
    expect(status).toBe(400)
    expect((await app.call('GET', `/v1/agents/${agent_id}`)).text).toBe(before.text)
  })

  test.each([
    ['the current ETag', '"2"', 200],
    ['any version', '*', 200],
    ['a list that includes the current ETag', '"1", "2"', 200],
    ['an earlier ETag', '"1"', 412],
    ['a later ETag', '"3"', 412],
    ['a list without the current ETag', '"1","3"', 412],
    ['the current ETag marked weak', 'W/"2"', 412],
    ['the current version number without quotes', '2', 412],
    ['an empty ETag', '""', 412],
  ])('with %s in If-Match (%s) returns %i', async (_what, tag, expected) => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const path = `/v1/agents/${agent_id}`
    await app.call('PUT', path, { body: { yaml: GREETER } })
    const { status, body } = await app.call('PUT', path, {
      body: { yaml: FULL_DEFINITION },
      headers: { 'If-Match': tag },
    })
    expect(status).toBe(expected)
    if (expected === 412) expect(body).toEqual({ error: expect.any(String), code: 'precondition_failed' })
    expect((await app.call('GET', path)).headers.get('etag')).toBe(expected === 200 ? '"3"' : '"2"')
  })

  test('with If-Match returns 404 for an unknown agent', async () => {
    const app = await startApp()
    const options = { body: { yaml: GREETER }, headers: { 'If-Match': '*' } }
    expect((await app.call('PUT', '/v1/agents/agent-nobody', options)).status).toBe(404)
  })
})
