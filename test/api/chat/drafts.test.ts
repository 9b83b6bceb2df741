/** What an owner sees of a definition that is not saved, and of the steps of its turn. */
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
import { createTypedClient } from '../../support/rpc.ts'
import { tool } from '../../support/tools.ts'

const yaml = (fields: object) => JSON.stringify({ name: 'Draft', instructions: 'Help.', ...fields })

type Client = ReturnType<typeof createTypedClient>
type Request = Parameters<Client['chat']['stream']['mutate']>[0]

/** The chunks of a stream. */
async function tryOut(app: TestApp, request: Request, key = app.key) {
  const chunks = await createTypedClient(app, key).chat.stream.mutate(request)
  const all = []
  for await (const run of chunks) all.push(...run)
  return all
}

type Chunks = Awaited<ReturnType<typeof tryOut>>
const textOf = (chunks: Chunks) =>
  chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? '')).join('')
const stepsOf = (chunks: Chunks) => chunks.flatMap(({ step }) => step ?? [])
const says = (content: string): Request['messages'] => [{ role: 'user', content }]

describe('a draft', () => {
  test('answers without being saved, whether or not there is an agent', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const draft = { yaml: yaml({ tools: ['lookup'] }) }
    const call = says('[[tool:lookup {"a":1}]]')
    for (const model of [undefined, `agent/${agent_id}`]) {
      const chunks = await tryOut(app, { model, messages: call, trial: { draft } })
      const calls = chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.tool_calls ?? []))
      expect(calls.map((one) => one.function?.name)).toEqual(['lookup'])
    }
    const { body } = await app.call('GET', `/v1/agents/${agent_id}`)
    expect([body.definition.tools, body.version]).toEqual([[], 1])
  })

  test('keeps the policy of the agent it would replace', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const policy = { allowed_models: [{ provider: 'mock', model: 'mock' }] }
    await app.call('PUT', `/v1/agents/${agent_id}/model-policy`, { body: policy })
    const draft = { yaml: yaml({ model: 'mock' }) }
    const chunks = await tryOut(app, { model: `agent/${agent_id}`, messages: says('hi'), trial: { draft } })
    expect(textOf(chunks)).toBe('You said: hi')
  })

  test('that is no definition is refused with its place', async () => {
    const app = await startApp()
    const draft = { yaml: 'name: A\ninstructions: 7\n' }
    await expect(tryOut(app, { messages: says('hi'), trial: { draft } })).rejects.toThrow(
      'instructions: must be a string (line 2, column 15)',
    )
  })

  test('is nothing for an agent key, nor for REST', async () => {
    const app = await startApp()
    const { agent_key } = await app.createAgent()
    const trial = { draft: { yaml: yaml({}) } }
    await expect(tryOut(app, { messages: says('hi'), trial }, agent_key)).rejects.toThrow(
      'trial: requires a parent key',
    )
    const rest = await app.call('POST', '/v1/chat/completions', {
      key: agent_key,
      body: { messages: says('hi'), trial },
    })
    expect([rest.status, rest.body.error.param]).toEqual([400, 'trial'])
  })

  test('is booked under the agent it is of', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    await tryOut(app, {
      model: `agent/${agent_id}`,
      messages: says('hi'),
      trial: { draft: { yaml: yaml({}) } },
    })
    const { body } = await app.call('GET', '/v1/usage?group_by=agent')
    expect(body.data).toEqual([expect.objectContaining({ agent: agent_id, requests: 1 })])
  })
})

describe('a trace', () => {
  test('tells who answers, every call and every result, in order and between the text', async () => {
    const app = await startApp({}, { tools: { weather: tool(() => ({ degrees: 21 })) } })
    const draft = { yaml: yaml({ tools: ['weather'] }) }
    const messages = says('[[tool:weather {"city":"Oslo"}]]')
    const chunks = await tryOut(app, { messages, trial: { draft, is_traced: true } })
    const [call] = stepsOf(chunks).filter((step) => step.type === 'tool_call')
    expect(stepsOf(chunks)).toEqual([
      { type: 'answering', provider: 'mock', model: 'mock', attempts: 1, is_fallback: false },
      { type: 'tool_call', call_id: call?.call_id, name: 'weather', arguments: '{"city":"Oslo"}' },
      { type: 'tool_result', call_id: call?.call_id, content: '{"degrees":21}' },
    ])
    expect(textOf(chunks)).toContain('21')
    const places = chunks.map(({ step, choices }) => step?.type ?? choices[0]?.delta.content ?? '')
    expect(places.indexOf('tool_result')).toBeLessThan(places.findIndex((place) => place.includes('21')))
  })

  test('tells of a call before its tool is done', async () => {
    let finish: (answer: string) => void = () => {}
    const answer = new Promise<string>((resolve) => {
      finish = resolve
    })
    const app = await startApp({}, { tools: { slow: tool(() => answer) } })
    const request = {
      messages: says('[[tool:slow]]'),
      trial: { draft: { yaml: yaml({ tools: ['slow'] }) }, is_traced: true },
    }
    const seen: string[] = []
    for await (const run of await createTypedClient(app).chat.stream.mutate(request)) {
      for (const { step } of run) if (step !== undefined) seen.push(step.type)
      if (seen.includes('tool_call')) finish('done')
    }
    expect(seen).toEqual(['answering', 'tool_call', 'tool_result'])
  })

  test('is left out unless it is asked for', async () => {
    const app = await startApp({}, { tools: { weather: tool(() => 'sun') } })
    const trial = { draft: { yaml: yaml({ tools: ['weather'] }) } }
    expect(stepsOf(await tryOut(app, { messages: says('[[tool:weather]]'), trial }))).toEqual([])
  })

  test('ends with the failure of its stream', async () => {
    const app = await startApp()
    const trial = { is_traced: true }
    await expect(tryOut(app, { messages: says('[[break:2]] one two three four'), trial })).rejects.toThrow()
    await expect(tryOut(app, { messages: says('[[error:400]]'), trial })).rejects.toThrow()
  })
})
