/** Tests which server tools run in a turn, and the messages that the model and the caller receive. */
import { describe, expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'
import {
  agentWith,
  chat,
  citySchema,
  listRequestBodies,
  outcomeOf,
  resultsIn,
  tool,
  toolCallResponse,
  ways,
} from '../../support/tools.ts'

const harness = await startChatHarness()

const weather = tool(({ city }) => `Rain in ${city}`, {
  description: 'Reports the weather.',
  inputSchema: citySchema,
})
const ask = { name: 'ask', description: 'Asks the user.' }

describe.each(ways)('a server tool (%s)', (way) => {
  test('runs within the turn with the mock backend', async () => {
    const app = await startApp({}, { tools: { weather } })
    const { agent_key } = await app.createAgent(agentWith(['weather']))
    const body = chatRequest('[[tool:weather {"city":"Bonn"}]]', { model: 'mock' })
    expect(await chat(app, way, agent_key, body)).toEqual({
      content: 'The tool answered: Rain in Bonn',
      calls: [],
      finishes: ['stop'],
    })
  })

  test('runs within the turn, and the model receives its previous message and the result', async () => {
    const app = await harness.start({}, { tools: { weather } })
    const { agent_key } = await app.createAgent(agentWith(['weather']))
    await harness.answerWith(
      toolCallResponse(way, [{ name: 'weather', args: '{"city":"Bonn"}' }], {
        content: 'Wait. ',
        reasoning_content: 'I should look.',
      }),
      1,
    )
    expect(await chat(app, way, agent_key, chatRequest('hello'))).toEqual({
      content: 'Wait. Tool said: Rain in Bonn',
      calls: [],
      finishes: ['stop'],
    })
    const [first, second] = await listRequestBodies(harness)
    expect(first.tools).toEqual([
      {
        type: 'function',
        function: { name: 'weather', description: 'Reports the weather.', parameters: citySchema },
      },
    ])
    expect(second.messages.slice(2)).toEqual([
      {
        role: 'assistant',
        content: 'Wait. ',
        reasoning_content: 'I should look.',
        tool_calls: [
          {
            id: 'call_0_weather',
            type: 'function',
            function: { name: 'weather', arguments: '{"city":"Bonn"}' },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'call_0_weather', content: 'Rain in Bonn' },
    ])
  })

  test('runs concurrently with the other tools of its round', async () => {
    const arrived: string[] = []
    const both = Promise.withResolvers<void>()
    const meet = (name: string) =>
      tool(async () => {
        arrived.push(name)
        if (arrived.length === 2) both.resolve()
        await both.promise
        return name
      })
    const app = await harness.start({}, { tools: { one: meet('one'), two: meet('two') } })
    const { agent_key } = await app.createAgent(agentWith(['one', 'two']))
    await harness.answerWith(toolCallResponse(way, [{ name: 'one' }, { name: 'two' }]), 1)
    await chat(app, way, agent_key, chatRequest('hello'))
    expect(resultsIn((await listRequestBodies(harness))[1])).toEqual(['one', 'two'])
  })

  test("runs before the model is called again even if the model also calls one of the caller's tools", async () => {
    const app = await harness.start({}, { tools: { weather } })
    const { agent_key } = await app.createAgent(agentWith(['weather', ask]))
    const mixed = [{ name: 'ask' }, { name: 'weather', args: '{"city":"Bonn"}' }]
    await harness.answerWith(toolCallResponse(way, mixed), 1)
    expect(await chat(app, way, agent_key, chatRequest('hello'))).toMatchObject({
      calls: [],
      finishes: ['stop'],
    })
    const [, second] = await listRequestBodies(harness)
    expect(second.messages.slice(2)).toMatchObject([
      { role: 'assistant', tool_calls: [{ function: { name: 'weather' } }] },
      { role: 'tool', content: 'Rain in Bonn' },
    ])
  })

  test("does not affect calls to the caller's tools", async () => {
    const app = await harness.start({}, { tools: { weather } })
    const { agent_key } = await app.createAgent(agentWith(['weather', ask]))
    await harness.answerWith(toolCallResponse(way, [{ name: 'ask' }]), 1)
    expect(await chat(app, way, agent_key, chatRequest('hello'))).toEqual({
      content: 'Hm. ',
      calls: ['ask'],
      finishes: ['tool_calls'],
    })
    expect(await harness.listChats()).toHaveLength(1)
  })

  test('is called until the turn ends with finish reason stop after eight model calls', async () => {
    let runs = 0
    const app = await harness.start({}, { tools: { again: tool(() => ++runs) } })
    const { agent_key } = await app.createAgent(agentWith(['again']))
    await harness.answerWith(toolCallResponse(way, [{ name: 'again' }]))
    expect(await chat(app, way, agent_key, chatRequest('hello'))).toEqual({
      content: 'Hm. '.repeat(8),
      calls: [],
      finishes: ['stop'],
    })
    expect([runs, (await harness.listChats()).length]).toEqual([7, 8])
  })

  test('is no longer required by tool_choice after it has run', async () => {
    const app = await harness.start({}, { tools: { weather } })
    const { agent_key } = await app.createAgent(agentWith(['weather', ask]))
    const demand = { type: 'function', function: { name: 'weather' } }
    const allowed = {
      type: 'allowed_tools',
      allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'weather' } }] },
    }
    const demandOther = { type: 'function', function: { name: 'ask' } }
    for (const tool_choice of ['required', demand, allowed, demandOther]) {
      await harness.answerWith(toolCallResponse(way, [{ name: 'weather', args: '{"city":"Bonn"}' }]), 1)
      await chat(app, way, agent_key, chatRequest('hello', { tool_choice }))
    }
    const later = (await listRequestBodies(harness)).filter((_body, index) => index % 2 === 1)
    expect(later.map((body) => body.tool_choice)).toEqual([
      'auto',
      'auto',
      { ...allowed, allowed_tools: { ...allowed.allowed_tools, mode: 'auto' } },
      demandOther,
    ])
  })
})

describe('a stream with server tools', () => {
  test('consists of a single role, the text of every round, one finish reason and the total usage', async () => {
    const app = await harness.start({}, { tools: { weather } })
    const { agent_key } = await app.createAgent(agentWith(['weather']))
    await harness.answerWith(toolCallResponse('streamed', [{ name: 'weather', args: '{"city":"Bonn"}' }]), 2)
    const answer = await app.stream(
      chatRequest('hello', { stream_options: { include_usage: true } }),
      agent_key,
    )
    const choices = answer.events.flatMap((chunk) => chunk.choices)
    expect(choices.filter(({ delta }) => delta.role !== undefined)).toHaveLength(1)
    expect(choices[0].delta.role).toBe('assistant')
    expect(outcomeOf(answer).content).toBe('Hm. Hm. Tool said: Rain in Bonn')
    expect(outcomeOf(answer).finishes).toEqual(['stop'])
    const usages = answer.events.filter((chunk) => chunk.usage)
    const [, , last] = await listRequestBodies(harness)
    const { prompt_tokens, completion_tokens } = usages[0].usage
    expect(usages).toHaveLength(1)
    expect(prompt_tokens).toBeGreaterThan(20 + last.messages.length)
    expect(completion_tokens).toBe(2 + 2 + 5)
    expect(new Set(answer.events.map(({ id }) => id)).size).toBe(1)
    expect(answer.isDone).toBe(true)
  })

  test('contains keep-alive comments while a tool runs', async () => {
    const beats = Promise.withResolvers<void>()
    const app = await harness.start(
      { PARLEY_HEARTBEAT_SECONDS: '0.05' },
      { tools: { slow: tool(() => beats.promise) } },
    )
    const { agent_key } = await app.createAgent(agentWith(['slow']))
    await harness.answerWith(toolCallResponse('streamed', [{ name: 'slow' }]), 1)
    const response = await fetch(`${app.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${agent_key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ ...chatRequest('hello'), stream: true }),
    })
    let text = ''
    for await (const read of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += read
      if (text.split(': keep-alive\n\n').length > 2) beats.resolve()
    }
    expect(text).toMatch(/"Hm\. "[\s\S]*(: keep-alive\n\n){2}[\s\S]*Tool[\s\S]*\[DONE\]/)
  })
})
