/**
 * Tests that an agent can use only the server tools in its definition, regardless of the caller's request.
 */
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { startApp } from '../../support/app.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'
import { createTypedClient } from '../../support/rpc.ts'
import {
  agentWith,
  CHAT,
  chat,
  citySchema,
  listRequestBodies,
  resultsIn,
  tool,
  toolCallResponse,
} from '../../support/tools.ts'

const harness = await startChatHarness()

const weather = tool(({ city }) => `Rain in ${city}`, {
  description: 'Reports the weather.',
  inputSchema: citySchema,
})
const rain = [{ name: 'weather', args: '{"city":"Bonn"}' }]
const callersWeather = {
  type: 'function',
  function: { name: 'weather', description: 'Mine.', parameters: { type: 'object', properties: {} } },
}

describe('a server tool in a request to the model', () => {
  test.each<[what: string, named: unknown, shown: object]>([
    ['a bare name', 'weather', { description: 'Reports the weather.', parameters: citySchema }],
    [
      'a name in a mapping',
      { name: 'weather' },
      { description: 'Reports the weather.', parameters: citySchema },
    ],
    [
      'a description',
      { name: 'weather', description: 'Ours.' },
      { description: 'Ours.', parameters: citySchema },
    ],
    [
      'a schema',
      { name: 'weather', inputSchema: { properties: { city: { enum: ['Bonn'] } } } },
      {
        description: 'Reports the weather.',
        parameters: { type: 'object', properties: { city: { enum: ['Bonn'] } } },
      },
    ],
  ])("uses the server's fields unless the agent sets them (%s)", async (_what, named, shown) => {
    const app = await harness.start({}, { tools: { weather } })
    const { agent_key } = await app.createAgent(agentWith([named]))
    await chat(app, 'whole', agent_key, chatRequest('hello', { tools: [callersWeather] }))
    const [body] = await listRequestBodies(harness)
    expect(body.tools).toEqual([{ type: 'function', function: { name: 'weather', ...shown } }])
    const me = await app.call('GET', '/v1/agents/me', { key: agent_key })
    const [{ inputSchema, ...mine }] = me.body.tools
    expect({ ...mine, parameters: { type: 'object', ...inputSchema } }).toEqual({ name: 'weather', ...shown })
  })
})

describe('tool arguments', () => {
  test("must match the agent's schema in addition to the server's", async () => {
    const app = await harness.start({}, { tools: { weather } })
    const inputSchema = { properties: { city: { enum: ['Berlin', 'Hamburg'] } } }
    const { agent_key } = await app.createAgent(agentWith([{ name: 'weather', inputSchema }]))
    await harness.answerWith(toolCallResponse('whole', rain), 1)
    await chat(app, 'whole', agent_key, chatRequest('hello'))
    expect(resultsIn((await listRequestBodies(harness))[1])).toEqual([
      "Error: the arguments of 'weather' are invalid: city must be one of Berlin, Hamburg",
    ])
  })
})

describe('a caller of server tools', () => {
  test('cannot add a server tool that the agent does not have', async () => {
    const app = await harness.start({}, { tools: { weather } })
    const { agent_key } = await app.createAgent(agentWith(['search']))
    await harness.answerWith(toolCallResponse('whole', rain), 1)
    await chat(app, 'whole', agent_key, chatRequest('hello', { tools: [callersWeather] }))
    const [first, second] = await listRequestBodies(harness)
    expect(first.tools).toMatchObject([{ function: { name: 'search' } }])
    expect(resultsIn(second)).toEqual(["Error: there is no tool 'weather' here. Answer without it."])
  })

  test('receives calls to its own tool if the agent does not have any tools', async () => {
    const app = await harness.start({}, { tools: { weather } })
    const { agent_key } = await app.createAgent(agentWith([]))
    await harness.answerWith(toolCallResponse('whole', rain), 1)
    const outcome = await chat(app, 'whole', agent_key, chatRequest('hello', { tools: [callersWeather] }))
    expect(outcome).toMatchObject({ calls: ['weather'], finishes: ['tool_calls'] })
  })

  test('cannot use them with a parent key unless the request selects an agent', async () => {
    const app = await harness.start({}, { tools: { weather } })
    await harness.answerWith(toolCallResponse('whole', rain), 1)
    const outcome = await chat(app, 'whole', app.key, chatRequest('hello', { tools: [callersWeather] }))
    expect(outcome).toMatchObject({ calls: ['weather'], finishes: ['tool_calls'] })
    const [body] = await listRequestBodies(harness)
    expect(body.tools).toEqual([callersWeather])
  })

  test("can use the agent's tools with a parent key if the request names the agent as its model", async () => {
    const app = await startApp({}, { tools: { weather } })
    const { agent_id } = await app.createAgent(agentWith(['weather']))
    const body = chatRequest('[[tool:weather {"city":"Bonn"}]]', { model: `agent/${agent_id}` })
    expect(await chat(app, 'whole', app.key, body)).toMatchObject({
      content: 'The tool answered: Rain in Bonn',
    })
  })

  test("can use the agent's tools over tRPC", async () => {
    const app = await startApp({}, { tools: { weather } })
    const { agent_key } = await app.createAgent(agentWith(['weather']))
    const chunks = await createTypedClient(app, agent_key).chat.stream.mutate({
      messages: [{ role: 'user', content: '[[tool:weather {"city":"Bonn"}]]' }],
    })
    let text = ''
    for await (const run of chunks) for (const { choices } of run) text += choices[0]?.delta.content ?? ''
    expect(text).toBe('The tool answered: Rain in Bonn')
  })

  test("can use the agent's tools in the Responses API", async () => {
    const app = await startApp({}, { tools: { weather } })
    const { agent_key } = await app.createAgent(agentWith(['weather']))
    const input = '[[tool:weather {"city":"Bonn"}]]'
    const answer = await app.call('POST', '/v1/responses', { key: agent_key, body: { model: 'mock', input } })
    expect(answer.body.output).toMatchObject([
      { type: 'message', content: [{ text: 'The tool answered: Rain in Bonn' }] },
    ])
  })

  test('must not request more than one choice', async () => {
    const app = await harness.start({}, { tools: { weather } })
    const { agent_key } = await app.createAgent(agentWith(['weather']))
    const answer = await app.call('POST', CHAT, { key: agent_key, body: chatRequest('hello', { n: 2 }) })
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringMatching(/^n: must be 1, because this agent/), param: 'n' } },
    })
  })
})

test('a tool handler receives the ids of the agent, its owner and the request, and a null visitor in a plain chat', async () => {
  const seen: unknown[] = []
  const whoami = tool((_args, { signal, ...who }) => void seen.push({ ...who, isLive: !signal.aborted }))
  const app = await startApp({}, { tools: { whoami } })
  const other = await createTenant(app)
  for (const key of [app.key, other]) {
    const { agent_id, agent_key } = await app.createAgent(agentWith(['whoami']), key)
    const answer = await app.call('POST', CHAT, {
      key: agent_key,
      body: chatRequest('[[tool:whoami]]', { model: 'mock' }),
    })
    expect(seen.pop()).toEqual({
      agentId: agent_id,
      tenantId: key.slice('svc_'.length, 'svc_'.length + 12),
      requestId: answer.headers.get('x-request-id'),
      visitor: null,
      isLive: true,
    })
  }
})

test('each of two agents can use only the tools in its definition', async () => {
  const app = await startApp({}, { tools: { weather, time: tool(() => 'noon') } })
  const keys = await Promise.all(
    [['weather'], ['time']].map(async (tools) => (await app.createAgent(agentWith(tools))).agent_key),
  )
  const body = chatRequest('[[tool:weather {"city":"Bonn"}]][[tool:time]]', { model: 'mock' })
  const said = await Promise.all(keys.map(async (key) => (await chat(app, 'whole', key, body)).content))
  const missing = (name: string) =>
    `The tool answered: Error: there is no tool '${name}' here. Answer without it.`
  expect(said).toEqual([
    `The tool answered: Rain in Bonn\n${missing('time')}`,
    `${missing('weather')}\nThe tool answered: noon`,
  ])
})
