/** Tests which model or agent answers a chat request. */
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'

const harness = await startChatHarness()
const path = '/v1/chat/completions'
const agentYaml = (model?: string) =>
  `name: A\ninstructions: B\n${model === undefined ? '' : `model: ${model}\n`}`

async function askedModels(): Promise<unknown[]> {
  return (await harness.listChats()).map(({ body }) => (body as { model: unknown }).model)
}

test.each(['/v1/chat/completions', '/v1/responses', '/v1/embeddings'])(
  '%s returns 400 for a model id of more than 300 characters',
  async (route) => {
    const app = await harness.start()
    const body = { messages: [{ role: 'user', content: 'a' }], input: 'a' }
    const answer = await app.call('POST', route, { body: { ...body, model: 'm'.repeat(301) } })
    expect(answer).toMatchObject({ status: 400, body: { error: { param: 'model' } } })
    expect((await app.call('POST', route, { body: { ...body, model: 'm'.repeat(300) } })).status).toBe(404)
  },
)

describe('the model that answers', () => {
  test.each([
    ['the one in the request', { model: 'up-small' }, 'up-small'],
    ['the one in the request, with its provider prefix', { model: 'gateway/up-small' }, 'up-small'],
    ["the backend's first chat model if the request names none", {}, 'up-chat'],
    ["the backend's first chat model if the request sets `model` to null", { model: null }, 'up-chat'],
  ])('is %s', async (_which, request, model) => {
    const app = await harness.start()
    const { body } = await app.call('POST', path, {
      body: { ...chatRequest('hello'), model: undefined, ...request },
    })
    expect(await askedModels()).toEqual([model])
    expect(body.model).toBe(model)
  })

  test("is the operator's default if the request does not specify one", async () => {
    const app = await harness.start({ PARLEY_DEFAULT_MODEL: 'up-small' })
    await app.call('POST', path, { body: { ...chatRequest('hello'), model: null } })
    expect(await askedModels()).toEqual(['up-small'])
  })

  test.each([
    ["the agent's model", 'up-small', {}, 'up-small'],
    ["the default if the agent's is unknown", 'gone', {}, 'up-chat'],
    ['the default if the agent has none', undefined, {}, 'up-chat'],
    ['the one in the request', 'up-small', { model: 'up-chat' }, 'up-chat'],
  ])('is %s with an agent key', async (_which, own, request, model) => {
    const app = await harness.start()
    const { agent_key } = await app.createAgent(agentYaml(own))
    const body = { ...chatRequest('hello'), model: undefined, ...request }
    expect(await app.call('POST', path, { key: agent_key, body })).toMatchObject({
      status: 200,
      body: { model },
    })
    expect(await askedModels()).toEqual([model])
  })

  test.each([false, true])('must exist, or the request returns 404 (stream: %s)', async (stream) => {
    const app = await harness.start()
    const { agent_key } = await app.createAgent()
    for (const key of [app.key, agent_key]) {
      const answer = await app.call('POST', path, {
        key,
        body: chatRequest('hello', { model: 'no/such:model', stream }),
      })
      expect(answer).toMatchObject({
        status: 404,
        body: { error: { type: 'invalid_request_error', code: 'model_not_found', param: 'model' } },
      })
    }
    expect(await askedModels()).toEqual([])
  })

  test("may have an unknown id while the backend's model list is unavailable", async () => {
    await harness.upstream.script('/v1/models', '{{up:status 500}}')
    const app = await harness.start()
    expect((await app.call('POST', path, { body: chatRequest('hello', { model: 'unlisted' }) })).status).toBe(
      200,
    )
    const answer = await app.call('POST', path, { body: chatRequest('hello', { model: null }) })
    expect(answer).toMatchObject({ status: 503, body: { error: { code: 'service_unavailable' } } })
    expect(await askedModels()).toEqual(['unlisted'])
  })
})

describe('an agent id in the model field', () => {
  const persona = { role: 'system', content: 'B' }

  test("selects the agent for its owner's parent key", async () => {
    const app = await harness.start()
    const { agent_id } = await app.createAgent(agentYaml('up-small'))
    const { status, body } = await app.call('POST', path, {
      body: chatRequest('hello', { model: `agent/${agent_id}`, top_k: 5 }),
    })
    const [chat] = await harness.listChats()
    expect(status).toBe(200)
    expect(body.model).toBe('up-small')
    expect(chat?.body).toMatchObject({ model: 'up-small', messages: [persona, {}], top_k: 5 })
  })

  test('selects the agent for its own key', async () => {
    const app = await harness.start()
    const { agent_id, agent_key } = await app.createAgent(agentYaml('up-small'))
    const { events } = await app.stream(chatRequest('hello', { model: `agent/${agent_id}` }), agent_key)
    expect(events[0].model).toBe('up-small')
  })

  test('is rejected with 403 if the key belongs to another agent', async () => {
    const app = await harness.start()
    const [one, other] = [await app.createAgent(), await app.createAgent()]
    const body = chatRequest('hello', { model: `agent/${other.agent_id}` })
    expect(await app.call('POST', path, { key: one.agent_key, body })).toMatchObject({
      status: 403,
      body: { error: { type: 'permission_error', code: 'model_not_allowed', param: 'model' } },
    })
  })

  test.each(["another tenant's", 'deleted', 'unknown'])('is rejected with 404 if it is %s', async (which) => {
    const app = await harness.start()
    const { agent_id } = await app.createAgent()
    if (which === 'deleted') await app.call('DELETE', `/v1/agents/${agent_id}`)
    const key = which === "another tenant's" ? await createTenant(app) : app.key
    const model = `agent/${which === 'unknown' ? 'agent-00000000000000000000' : agent_id}`
    expect(await app.call('POST', path, { key, body: chatRequest('hello', { model }) })).toMatchObject({
      status: 404,
      body: { error: { code: 'model_not_found', param: 'model' } },
    })
    expect(await askedModels()).toEqual([])
  })
})
