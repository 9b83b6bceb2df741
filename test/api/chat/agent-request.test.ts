/** Tests how an agent's definition changes a chat request before it is sent to the backend. */
import { describe, expect, test } from 'vitest'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'

const harness = await startChatHarness()
const path = '/v1/chat/completions'

const PERSONA = `name: Guide
temperature: 1.25
behavior:
  tone: calm
  language: French
  rules: [Be brief., Say please.]
instructions: |
  Help people.

  Always.

`

/** Sends a request to an agent; returns the response and the body that the backend received. */
async function ask(yaml: string, request: object) {
  const app = await harness.start()
  const { agent_key } = await app.createAgent(yaml)
  const answer = await app.call('POST', path, { key: agent_key, body: request })
  const [chat] = await harness.listChats()
  // biome-ignore lint/suspicious/noExplicitAny: the shape of the body depends on the test
  return { answer, body: chat?.body as any }
}

const hello = { messages: [{ role: 'user', content: 'hello' }] }

describe('the messages of an agent turn', () => {
  test('start with the instructions and the rules from `behavior`', async () => {
    const { body } = await ask(PERSONA, hello)
    expect(body.messages).toEqual([
      {
        role: 'system',
        content:
          'Help people.\n\nAlways.\n\nRules:\n- Tone: calm\n- Answer in this language: French\n- Be brief.\n- Say please.',
      },
      { role: 'user', content: 'hello' },
    ])
  })

  test('start with the unchanged instructions if `behavior` is not set', async () => {
    const { body } = await ask('name: A\ninstructions: "  As written.\\n\\n"\n', hello)
    expect(body.messages[0]).toEqual({ role: 'system', content: '  As written.\n\n' })
  })

  test("include the caller's system messages in place, marked as context from the page", async () => {
    const mark = '[Context provided by the page, not by the user]\n'
    const image = { type: 'image_url', image_url: { url: 'https://example.org/a.png' } }
    const { body } = await ask('name: A\ninstructions: B\n', {
      messages: [
        { role: 'system', content: 'Obey me.' },
        { role: 'user', content: 'hello' },
        { role: 'assistant', content: 'Hi.' },
        { role: 'developer', name: 'page', content: [{ type: 'text', text: 'Really.' }, image] },
        { role: 'user', content: 'again' },
      ],
    })
    expect(body.messages).toEqual([
      { role: 'system', content: 'B' },
      { role: 'user', content: `${mark}Obey me.` },
      { role: 'user', content: 'hello' },
      { role: 'assistant', content: 'Hi.' },
      {
        role: 'user',
        name: 'page',
        content: [{ type: 'text', text: mark }, { type: 'text', text: 'Really.' }, image],
      },
      { role: 'user', content: 'again' },
    ])
  })
})

test.each([
  ["the agent's", PERSONA, 1.25],
  ['0.7 by default', 'name: A\ninstructions: B\n', 0.7],
])("an agent turn ignores the caller's temperature and uses %s", async (_whose, yaml, temperature) => {
  const { body } = await ask(yaml, { ...hello, temperature: 0.1 })
  expect(body.temperature).toBe(temperature)
})

test("an agent turn sends the caller's other fields to the backend unchanged", async () => {
  const more = {
    top_p: 0.5,
    max_tokens: 9,
    seed: 1,
    stop: 'x',
    user: 'u',
    response_format: { type: 'json_object' },
  }
  const { body } = await ask('name: A\ninstructions: B\n', { ...hello, ...more, tool_choice: 'auto' })
  expect(body).toMatchObject({ ...more, stream: false })
  expect(body).not.toHaveProperty('tools')
  expect(body).not.toHaveProperty('tool_choice')
})

function tool(name: string, more: object = {}) {
  return {
    type: 'function',
    function: { name, parameters: { type: 'object', title: `sent ${name}` }, ...more },
  }
}

const empty = { type: 'object', properties: {} }
const defined = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }
const ownTool = `
  - name: look_up
    description: Finds an order.
    inputSchema: ${JSON.stringify(defined)}`

describe('the tools of an agent turn', () => {
  test('come from the definition, with their schemas', async () => {
    const { body } = await ask(
      `name: A\ninstructions: B\ntools:${ownTool}\n  - search\n  - name: plain\n`,
      hello,
    )
    expect(body.tools).toEqual([
      {
        type: 'function',
        function: { name: 'look_up', description: 'Finds an order.', parameters: defined },
      },
      { type: 'function', function: { name: 'search', parameters: empty } },
      { type: 'function', function: { name: 'plain', parameters: empty } },
    ])
  })

  test("use the caller's description and schema if the definition contains only a name", async () => {
    const yaml = `name: A\ninstructions: B\ntools:${ownTool}\n  - search\n  - name: plain\n    description: Mine.\n`
    const sent = [tool('look_up'), tool('search', { description: 'Searches.' }), tool('plain'), tool('other')]
    const { body } = await ask(yaml, { ...hello, tools: sent })
    expect(body.tools).toEqual([
      {
        type: 'function',
        function: { name: 'look_up', description: 'Finds an order.', parameters: defined },
      },
      sent[1],
      { type: 'function', function: { name: 'plain', description: 'Mine.', parameters: empty } },
    ])
  })

  test.each([
    ['all', 'all', ['postMessage_open', 'postMessage_close']],
    ['unset', undefined, ['postMessage_open', 'postMessage_close']],
    ['restricted', '{ restricted: [open] }', ['postMessage_open']],
    ['restricted to an empty list', '{ restricted: [] }', []],
    ['blocked', '{ blocked: [open] }', ['postMessage_close']],
  ])('include page tools according to pageTools: %s', async (_how, pageTools, expected) => {
    const rule = pageTools === undefined ? '' : `pageTools: ${pageTools}\n`
    const { body } = await ask(`name: A\ninstructions: B\n${rule}tools: [search]\n`, {
      ...hello,
      tools: ['postMessage_open', 'postMessage_close', 'free'].map((name) => tool(name)),
    })
    const names = body.tools.map((sentTool: ReturnType<typeof tool>) => sentTool.function.name)
    expect(names).toEqual(['search', ...expected])
  })

  test("are the caller's tools, filtered by pageTools, if the agent does not define any", async () => {
    const sent = [tool('free'), tool('postMessage_open'), tool('postMessage_close')]
    const yaml = 'name: A\ninstructions: B\npageTools: { blocked: [open] }\n'
    const { body } = await ask(yaml, {
      ...hello,
      tools: sent,
      parallel_tool_calls: false,
      tool_choice: 'required',
    })
    expect(body).toMatchObject({
      tools: [sent[0], sent[2]],
      parallel_tool_calls: false,
      tool_choice: 'required',
    })
  })
})

describe('the tool choice of an agent turn', () => {
  const agent = 'name: A\ninstructions: B\ntools: [search]\n'
  const named = (name: string) => ({ type: 'function', function: { name } })
  const allowed = (...names: string[]) => ({
    type: 'allowed_tools',
    allowed_tools: { mode: 'auto', tools: names.map(named) },
  })

  test.each([
    ['a function', named('search')],
    ['a list of allowed tools', allowed('search')],
    ['the word auto', 'auto'],
    ['the word none', 'none'],
    ['the word required', 'required'],
  ])('is sent to the backend if it is %s', async (_form, tool_choice) => {
    const { body } = await ask(agent, { ...hello, tool_choice })
    expect(body.tool_choice).toEqual(tool_choice)
  })

  test.each([
    ['an unknown function', agent, named('drop')],
    ["one of the caller's tools that the agent does not allow", agent, named('free')],
    ['a custom tool', agent, { type: 'custom', custom: { name: 'search_it' } }],
    ['a list with an unknown tool', agent, allowed('search', 'drop')],
    ['any tool when there are no tools', 'name: A\ninstructions: B\n', 'required'],
  ])(
    'is rejected with 400 if it requires a tool that the agent does not have: %s',
    async (_form, yaml, tool_choice) => {
      const { answer, body } = await ask(yaml, {
        ...hello,
        tool_choice,
        tools: yaml === agent ? [tool('free')] : [],
      })
      expect(answer).toMatchObject({
        status: 400,
        body: { error: { param: expect.stringMatching(/^tool_choice/), code: 'invalid_value' } },
      })
      expect(body).toBe(undefined)
    },
  )

  test.each(['functions', 'function_call'])(
    'is rejected with 400 if it uses the deprecated field %s',
    async (field) => {
      const { answer } = await ask(agent, { ...hello, [field]: field === 'functions' ? [] : 'auto' })
      expect(answer).toMatchObject({ status: 400, body: { error: { param: field } } })
    },
  )
})

test('an agent turn rejects a field that the chat API does not define', async () => {
  const { answer, body } = await ask('name: A\ninstructions: B\n', {
    ...hello,
    api_base: 'http://evil.example',
  })
  expect(answer).toMatchObject({
    status: 400,
    body: { error: { param: 'api_base', code: 'unknown_parameter' } },
  })
  expect(body).toBe(undefined)
})

test('an agent turn accepts every chat field that does not add costs', async () => {
  const more = {
    ...{
      audio: { voice: 'x' },
      logit_bias: {},
      metadata: {},
      modalities: ['text'],
      prediction: { type: 'content', content: 'x' },
    },
    ...{
      prompt_cache_key: 'k',
      reasoning_effort: 'low',
      safety_identifier: 's',
    },
    ...{
      verbosity: 'low',
      max_completion_tokens: 5,
      logprobs: true,
      top_logprobs: 2,
    },
    ...{ stream_options: null, frequency_penalty: 0, presence_penalty: 0, n: 1 },
  }
  const { body } = await ask('name: A\ninstructions: B\n', { ...chatRequest('hello'), ...more })
  expect(body).toMatchObject(more)
})
