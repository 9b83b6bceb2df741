/** Tests the widget's MCP server, which offers the page's tools to the agent. */
import { LATEST_PROTOCOL_VERSION, ListToolsResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { hostPageTools, type PublishCall } from '../../widget/extras/page-tools.ts'
import { createToolServer } from '../../widget/extras/tool-server.ts'
import { createPageToolClient } from '../../widget/frame/tools/mcp-client.ts'

afterEach(() => void vi.useRealTimers())

type Message = Readonly<Record<string, unknown>>

/** Creates a server with these tools. Its function `ask` sends a request and returns the response. */
function startServer(publishCall: PublishCall, names: readonly string[] = ['find']) {
  const sent: Message[] = []
  const tools = names.map(
    (name) => ({ type: 'function', function: { name, description: `Does ${name}.` } }) as const,
  )
  const server = createToolServer(
    () => new Map(hostPageTools(tools, publishCall)),
    (message) => void sent.push(message),
  )
  let lastId = 0
  const call = (method: string, params?: object) => {
    lastId += 1
    server.receive({ jsonrpc: '2.0', id: lastId, method, ...(params === undefined ? {} : { params }) })
    return lastId
  }
  const answerOf = (id: number) => sent.find((message) => message.id === id)
  return {
    server,
    sent,
    call,
    answerOf,
    async ask(method: string, params?: object) {
      const id = call(method, params)
      await vi.waitUntil(() => answerOf(id) !== undefined)
      return answerOf(id)
    },
  }
}

const callOf = (tool: string, args: object = {}) => ({ name: `postMessage_${tool}`, arguments: args })
const textOf = (answer: Message | undefined) => {
  const result = answer?.result as { content: { text: string }[]; isError?: boolean } | undefined
  return [result?.content[0]?.text, result?.isError ?? false]
}

test("the widget's tool server announces the newest protocol version", async () => {
  const { ask } = startServer(() => {})
  const answer = await ask('initialize', { protocolVersion: '2020-01-01', capabilities: {} })
  expect(answer).toMatchObject({
    jsonrpc: '2.0',
    id: 1,
    result: { protocolVersion: LATEST_PROTOCOL_VERSION, capabilities: { tools: { listChanged: true } } },
  })
})

test("the widget's tool server lists tools with the prefix and a valid schema", async () => {
  const { ask } = startServer(() => {}, ['find', 'book'])
  const { result } = (await ask('tools/list')) ?? {}
  expect(ListToolsResultSchema.parse(result).tools).toEqual([
    { name: 'postMessage_find', description: 'Does find.', inputSchema: { type: 'object' } },
    { name: 'postMessage_book', description: 'Does book.', inputSchema: { type: 'object' } },
  ])
})

test("the widget's tool server lists only the name of a tool with a cyclic schema", async () => {
  const parameters: Record<string, unknown> = { type: 'object' }
  parameters.self = parameters
  const sent: Message[] = []
  const tools = [
    { type: 'function', function: { name: 'bad', parameters } },
    { type: 'function', function: { name: 'good' } },
  ] as const
  const server = createToolServer(
    () => new Map(hostPageTools(tools, () => {})),
    (message) => void sent.push(message),
  )
  server.receive({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  await vi.waitUntil(() => sent.length === 1)
  expect(sent[0]?.result).toEqual({
    tools: [
      { name: 'postMessage_bad' },
      { name: 'postMessage_good', description: '', inputSchema: { type: 'object' } },
    ],
  })
})

describe('a call to a page tool', () => {
  test("is sent to the page without the name prefix and returns the page's result", async () => {
    const calls: unknown[] = []
    const { ask } = startServer(({ tool, args, sendResult }) => {
      calls.push([tool, args])
      sendResult('found')
    })
    expect(textOf(await ask('tools/call', callOf('find', { q: 'tea' })))).toEqual(['found', false])
    expect(calls).toEqual([['find', { q: 'tea' }]])
  })

  test.each([
    [{ rooms: [1] }, '{"rooms":[1]}', false],
    [null, 'null', false],
    [undefined, '', false],
    [{ content: [{ type: 'text', text: 'as MCP has it' }] }, 'as MCP has it', false],
    [{ content: [{ id: 1, title: 'an article' }] }, '{"content":[{"id":1,"title":"an article"}]}', false],
    [{ content: [{ type: 'text', text: 5 }] }, '{"content":[{"type":"text","text":5}]}', false],
    [{ content: [] }, '{"content":[]}', false],
    ['x'.repeat(64 * 1024), 'The tool result is larger than 64 KiB.', true],
    [
      {
        toJSON: () => {
          throw new Error('result is unavailable')
        },
      },
      'result is unavailable',
      true,
    ],
  ])("returns the page's result or error (case %#)", async (result, text, isError) => {
    const { ask } = startServer(({ sendResult }) => sendResult(result))
    expect(textOf(await ask('tools/call', callOf('find')))).toEqual([text, isError])
  })

  test('reaches a tool whose own name contains the prefix', async () => {
    const { ask } = startServer(({ tool, sendResult }) => sendResult(tool), ['my_postMessage_tool'])
    expect(textOf(await ask('tools/call', callOf('my_postMessage_tool')))).toEqual([
      'my_postMessage_tool',
      false,
    ])
  })

  test('returns only the first result that the page sends', async () => {
    const { ask, sent } = startServer(({ sendResult }) => {
      sendResult('first')
      sendResult('second')
      throw new Error('third')
    })
    expect(textOf(await ask('tools/call', callOf('find')))).toEqual(['first', false])
    expect(sent).toHaveLength(1)
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('no such room')
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('no such room')
      },
    ],
  ])("returns an error for the model if the page's callback %s", async (_how, publishCall) => {
    const { ask } = startServer(publishCall)
    expect(textOf(await ask('tools/call', callOf('find')))).toEqual(['no such room', true])
  })

  test('runs concurrently with other calls and returns as soon as its result arrives', async () => {
    const waiting: ((result: unknown) => void)[] = []
    const { call, answerOf } = startServer(({ sendResult }) => void waiting.push(sendResult))
    const [one, two] = [call('tools/call', callOf('find')), call('tools/call', callOf('find'))]
    await vi.waitUntil(() => waiting.length === 2)
    waiting[1]?.('second')
    await vi.waitUntil(() => answerOf(two) !== undefined)
    expect(answerOf(one)).toBeUndefined()
    waiting[0]?.('first')
    await vi.waitUntil(() => answerOf(one) !== undefined)
  })

  test('gets no response if it is cancelled or its client has disconnected', async () => {
    const waiting: ((result: unknown) => void)[] = []
    const { call, server, ask, sent } = startServer(({ sendResult }) => void waiting.push(sendResult))
    const id = call('tools/call', callOf('find'))
    server.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
    call('tools/call', callOf('find'))
    server.reset()
    await vi.waitUntil(() => waiting.length === 2)
    for (const send of waiting) send('late')
    await ask('ping')
    expect(sent.map((message) => message.id)).toEqual([3])
  })

  test.each(['postMessage_gone', 'find', 'postMessage_', 'postMessage_constructor'])(
    'returns an error for the unknown tool %s',
    async (name) => {
      const { ask } = startServer(() => {})
      expect(await ask('tools/call', { name, arguments: {} })).toMatchObject({ error: { code: -32602 } })
    },
  )
})

test("the widget's tool server rejects an unknown method", async () => {
  const { ask } = startServer(() => {})
  for (const method of ['resources/list', 'constructor', '']) {
    expect(await ask(method)).toMatchObject({ error: { code: -32601 } })
  }
})

test("the widget's tool server announces changed tools after the client has initialized", () => {
  const { server, sent } = startServer(() => {})
  server.publishTools()
  expect(sent).toEqual([])
  server.receive({ jsonrpc: '2.0', method: 'notifications/initialized' })
  server.publishTools()
  expect(sent).toEqual([{ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }])
})

/** Connects the frame's client to the page's server, with one tool that runs `publishCall`. */
async function connect(publishCall: PublishCall) {
  const toFrame: Message[] = []
  const tools = [{ type: 'function', function: { name: 'find', description: 'Finds.' } }] as const
  const server = createToolServer(
    () => new Map(hostPageTools(tools, publishCall)),
    (message) => {
      toFrame.push(message)
      client.receive(message)
    },
  )
  const client = createPageToolClient(
    (message) => server.receive(message),
    () => {},
  )
  client.start()
  await client.list()
  return { client, toFrame }
}

describe('a page tool that does not answer', () => {
  test('returns an error to the model after 29 seconds, and its late result is ignored', async () => {
    let sendResult: (result: unknown) => void = () => {}
    const { client, toFrame } = await connect((call) => {
      sendResult = call.sendResult
    })
    vi.useFakeTimers()
    const outcome = client.call('postMessage_find', {}, new AbortController().signal)
    await vi.advanceTimersByTimeAsync(28_999)
    const received = toFrame.length
    await vi.advanceTimersByTimeAsync(1)
    expect(await outcome).toEqual({ isError: true, text: 'The page did not respond within 29 seconds.' })
    sendResult('late')
    await vi.advanceTimersByTimeAsync(1)
    expect(toFrame).toHaveLength(received)
  })

  test('ends immediately when the visitor stops the answer', async () => {
    const { client } = await connect(() => {})
    const stop = new AbortController()
    const outcome = client.call('postMessage_find', {}, stop.signal)
    stop.abort()
    expect(await outcome).toEqual({ isError: true, text: 'The visitor stopped the answer.' })
  })
})
