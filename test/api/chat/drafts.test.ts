/** Tests draft runs, which try an unsaved definition and can include a trace. */
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import {
  createFallbackHarness,
  defaultModel,
  fallbackModel,
  noRetries,
  onlyForModel,
} from '../../support/fallbacks.ts'
import { createTypedClient } from '../../support/rpc.ts'
import { tool } from '../../support/tools.ts'

const { startAgent } = createFallbackHarness(await startChatHarness())

const yaml = (fields: object) => JSON.stringify({ name: 'Draft', instructions: 'Help.', ...fields })

type Client = ReturnType<typeof createTypedClient>
type Request = Parameters<Client['chat']['stream']['mutate']>[0]

async function runDraft(app: TestApp, request: Request, key = app.key) {
  const chunks = await createTypedClient(app, key).chat.stream.mutate(request)
  const all = []
  for await (const run of chunks) all.push(...run)
  return all
}

type Chunks = Awaited<ReturnType<typeof runDraft>>
const textOf = (chunks: Chunks) =>
  chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? '')).join('')
const stepsOf = (chunks: Chunks) => chunks.flatMap(({ step }) => step ?? [])
const userMessage = (content: string): Request['messages'] => [{ role: 'user', content }]

describe('a draft', () => {
  test('runs before it is saved, for a new or an existing agent', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const draft = { yaml: yaml({ tools: ['lookup'] }) }
    const call = userMessage('[[tool:lookup {"a":1}]]')
    for (const model of [undefined, `agent/${agent_id}`]) {
      const chunks = await runDraft(app, { model, messages: call, trial: { draft } })
      const calls = chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.tool_calls ?? []))
      expect(calls.map((one) => one.function?.name)).toEqual(['lookup'])
    }
    const { body } = await app.call('GET', `/v1/agents/${agent_id}`)
    expect([body.definition.tools, body.version]).toEqual([[], 1])
  })

  test("runs with the model in its definition only if its agent's model policy allows it", async () => {
    const { app, id } = await startAgent({
      ...{ default_model: null, fallback_models: [], allowed_models: [defaultModel] },
    })
    const draft = { yaml: yaml({ model: 'up-small' }) }
    const readAnswering = async () => {
      const request = { model: `agent/${id}`, messages: userMessage('hi'), trial: { draft, is_traced: true } }
      return stepsOf(await runDraft(app, request)).find(({ type }) => type === 'answering')
    }
    expect(await readAnswering()).toMatchObject(defaultModel)
    const body = { allowed_models: [defaultModel, fallbackModel] }
    expect((await app.call('PUT', `/v1/agents/${id}/model-policy`, { body })).status).toBe(200)
    expect(await readAnswering()).toMatchObject(fallbackModel)
  })

  test('runs with a different model only if the model policy allows it', async () => {
    const { app, id } = await startAgent({ allowed_models: [defaultModel], fallback_models: [] })
    const ask = (model: string) =>
      runDraft(app, {
        model: `agent/${id}`,
        messages: userMessage('hi'),
        trial: { draft: { yaml: yaml({}) }, model, is_traced: true },
      })
    const [answering] = stepsOf(await ask('up-chat')).filter(({ type }) => type === 'answering')
    expect(answering).toMatchObject(defaultModel)
    await expect(ask('up-small')).rejects.toThrow("may not use the model 'up-small'")
    await app.call('PUT', `/v1/agents/${id}/model-policy`, {
      body: { default_model: defaultModel, allowed_models: [defaultModel, fallbackModel] },
    })
    const [other] = stepsOf(await ask('up-small')).filter(({ type }) => type === 'answering')
    expect(other).toMatchObject(fallbackModel)
  })

  test('with an invalid definition is rejected with the position of the error', async () => {
    const app = await startApp()
    const draft = { yaml: 'name: A\ninstructions: 7\n' }
    await expect(runDraft(app, { messages: userMessage('hi'), trial: { draft } })).rejects.toThrow(
      'instructions: must be a string (line 2, column 15)',
    )
  })

  test('is rejected with an agent key, over tRPC and over REST', async () => {
    const app = await startApp()
    const { agent_key } = await app.createAgent()
    const trial = { draft: { yaml: yaml({}) } }
    await expect(runDraft(app, { messages: userMessage('hi'), trial }, agent_key)).rejects.toThrow(
      'trial: requires a parent key',
    )
    const rest = await app.call('POST', '/v1/chat/completions', {
      key: agent_key,
      body: { messages: userMessage('hi'), trial },
    })
    expect([rest.status, rest.body.error.param]).toEqual([400, 'trial'])
  })

  test("is included in its agent's usage", async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    await runDraft(app, {
      model: `agent/${agent_id}`,
      messages: userMessage('hi'),
      trial: { draft: { yaml: yaml({}) } },
    })
    const { body } = await app.call('GET', '/v1/usage?group_by=agent')
    expect(body.data).toEqual([expect.objectContaining({ agent: agent_id, requests: 1 })])
  })
})

describe("a draft run's trace", () => {
  test('includes the model, every tool call and every result in order, between the text chunks', async () => {
    const app = await startApp({}, { tools: { weather: tool(() => ({ degrees: 21 })) } })
    const draft = { yaml: yaml({ tools: ['weather'] }) }
    const messages = userMessage('[[tool:weather {"city":"Oslo"}]]')
    const chunks = await runDraft(app, { messages, trial: { draft, is_traced: true } })
    const [call] = stepsOf(chunks).filter((step) => step.type === 'tool_call')
    const mock = { provider: 'mock', model: 'mock' }
    const [at_ms, started_ms, tokens] = [expect.any(Number), expect.any(Number), expect.any(Number)]
    const attempt = { type: 'attempt', ...mock, started_ms, at_ms, is_fallback: false, failure: null }
    const output = { type: 'model_output', ...mock, at_ms, prompt_tokens: tokens, completion_tokens: tokens }
    expect(stepsOf(chunks)).toEqual([
      { type: 'route', at_ms, models: [mock], is_degraded: false },
      attempt,
      { type: 'answering', ...mock, at_ms, attempts: 1, is_fallback: false },
      { ...output, tool_calls: 1 },
      { type: 'tool_call', at_ms, call_id: call?.call_id, name: 'weather', arguments: '{"city":"Oslo"}' },
      { type: 'tool_result', at_ms, call_id: call?.call_id, content: '{"degrees":21}' },
      attempt,
      { ...output, tool_calls: 0 },
    ])
    const times = stepsOf(chunks).map((step) => step.at_ms)
    expect(times).toEqual(times.toSorted((one, other) => one - other))
    expect(textOf(chunks)).toContain('21')
    const places = chunks.map(({ step, choices }) => step?.type ?? choices[0]?.delta.content ?? '')
    expect(places.indexOf('tool_result')).toBeLessThan(places.findIndex((place) => place.includes('21')))
  })

  test('includes each tool call before the tool returns', async () => {
    let finish: (answer: string) => void = () => {}
    const answer = new Promise<string>((resolve) => {
      finish = resolve
    })
    const app = await startApp({}, { tools: { slow: tool(() => answer) } })
    const request = {
      messages: userMessage('[[tool:slow]]'),
      trial: { draft: { yaml: yaml({ tools: ['slow'] }) }, is_traced: true },
    }
    const seen: string[] = []
    for await (const run of await createTypedClient(app).chat.stream.mutate(request)) {
      for (const { step } of run) if (step !== undefined) seen.push(step.type)
      if (seen.includes('tool_call')) finish('done')
    }
    expect(seen.filter((type) => type.startsWith('tool_'))).toEqual(['tool_call', 'tool_result'])
  })

  test('includes the failed requests and the fallback that answers', async () => {
    const { app, id } = await startAgent({}, noRetries)
    const messages = userMessage(onlyForModel('{{up:status 503}}'))
    const chunks = await runDraft(app, { model: `agent/${id}`, messages, trial: { is_traced: true } })
    expect(stepsOf(chunks)).toMatchObject([
      { type: 'route', models: [defaultModel, fallbackModel] },
      { type: 'attempt', ...defaultModel, is_fallback: false, failure: { reason: 'status_5xx' } },
      { type: 'attempt', ...fallbackModel, is_fallback: true, failure: null },
      { type: 'answering', ...fallbackModel, attempts: 2, is_fallback: true },
      { type: 'model_output', ...fallbackModel, tool_calls: 0 },
    ])
  })

  test('includes the failed request of a turn without an answer', async () => {
    const app = await startApp()
    const trial = { is_traced: true }
    const stream = await createTypedClient(app).chat.stream.mutate({
      messages: userMessage('[[error:400]]'),
      trial,
    })
    const seen: Chunks = []
    const reading = (async () => {
      for await (const run of stream) seen.push(...run)
    })()
    await expect(reading).rejects.toThrow()
    expect(stepsOf(seen)).toMatchObject([
      { type: 'route' },
      { type: 'attempt', failure: { reason: 'status_4xx', message: expect.any(String) } },
    ])
  })

  test('is omitted unless it is requested', async () => {
    const app = await startApp({}, { tools: { weather: tool(() => 'sun') } })
    const trial = { draft: { yaml: yaml({ tools: ['weather'] }) } }
    expect(stepsOf(await runDraft(app, { messages: userMessage('[[tool:weather]]'), trial }))).toEqual([])
  })

  test('ends with an error if the stream fails', async () => {
    const app = await startApp()
    const trial = { is_traced: true }
    await expect(
      runDraft(app, { messages: userMessage('[[break:2]] one two three four'), trial }),
    ).rejects.toThrow()
    await expect(runDraft(app, { messages: userMessage('[[error:400]]'), trial })).rejects.toThrow()
  })
})

describe('the description of a draft', () => {
  test('contains the fields that visitors may read, without instructions', async () => {
    const app = await startApp()
    const embed = { title: 'Ask us', greeting: 'Hello', starters: ['Where?'] }
    const description = await createTypedClient(app).agents.describeDraft.mutate({ yaml: yaml({ embed }) })
    expect(description).toMatchObject({ id: 'draft', name: 'Draft', ...embed })
    const { agent_key } = await app.createAgent(yaml({ embed }))
    const saved = (await app.call('GET', '/v1/agents/me', { key: agent_key })).body
    expect(description).toEqual({ ...saved, id: 'draft' })
  })

  test('reports the error of an invalid definition', async () => {
    const app = await startApp()
    const described = createTypedClient(app).agents.describeDraft.mutate({ yaml: 'name: A\n' })
    await expect(described).rejects.toThrow('instructions: is required')
  })
})
