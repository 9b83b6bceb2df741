/** Tests agents with `toolData: names`, whose tool arguments and results are not stored. */
import type OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { startChatHarness } from '../../support/chat-harness.ts'
import { collect, createKeeper } from '../../support/conversations.ts'
import { makeFolder } from '../../support/process.ts'
import { findText, listItems, resume, sendChat, splitStream } from '../../support/stored-chats.ts'
import { tool, toolCallResponse } from '../../support/tools.ts'

const harness = await startChatHarness()
const SENT = 'quokka-sent'
const RETURNED = 'quokka-returned'
const args = JSON.stringify({ city: SENT, note: 'a longer text, so that it is sent in parts' })
const yaml = `name: Keeper
instructions: Keep.
tools: [weather]
conversations: { keep: 30d, toolData: names }
`
const PAGE_TOOL = 'postMessage_look'
const pageTool = { type: 'function' as const, name: PAGE_TOOL, strict: false, parameters: {} }

/** Makes the model answer without repeating its input. */
function answerBriefly(stream: boolean): Promise<void> {
  const names = { id: 'a', created: 1, model: 'up-chat' }
  const choice = { index: 0, finish_reason: 'stop' }
  const said = { role: 'assistant', content: 'Sunny.' }
  if (!stream) return harness.answerWith({ ...names, choices: [{ ...choice, message: said }] })
  const chunk = { ...names, object: 'chat.completion.chunk', choices: [{ ...choice, delta: said }] }
  return harness.answerWith([chunk])
}

/** Makes the model stream a call to the page tool, with its arguments in three parts. */
function callPageTool(): Promise<void> {
  const [first, said, call, ...rest] = toolCallResponse('streamed', [{ name: PAGE_TOOL, args }]) as [
    object,
    object,
    { choices: { delta: { tool_calls: { function: object }[] } }[] },
    ...object[],
  ]
  const parts = [args.slice(0, 10), args.slice(10, 20), args.slice(20)].map((part, index) => {
    const sent = index === 0 ? call.choices[0]?.delta.tool_calls[0] : { index: 0 }
    const called = { ...(index === 0 && { name: PAGE_TOOL }), arguments: part }
    return {
      ...call,
      choices: [{ index: 0, delta: { tool_calls: [{ ...sent, function: called }] }, finish_reason: null }],
    }
  })
  return harness.answerWith([first, said, ...parts, ...rest], 1)
}

async function start(stream = false) {
  const folder = `${await makeFolder()}/data`
  const weather = tool(async () => {
    await answerBriefly(stream)
    return RETURNED
  })
  const app = await harness.start({ PARLEY_DATA_DIR: folder }, { tools: { weather } })
  const { agent_key: key } = await app.createAgent(yaml)
  return { app, folder, key, ...(await createKeeper(app, yaml)) }
}

/** Streams a response in which the model calls the page tool. */
async function streamCall(visitor: OpenAI) {
  await callPageTool()
  const live = await collect(
    await visitor.responses.create({ input: 'hello', tools: [pageTool], stream: true }),
  )
  const { response } = live.at(-1) as OpenAI.Responses.ResponseCompletedEvent
  const call = response.output.at(-1) as OpenAI.Responses.ResponseFunctionToolCall
  expect(call).toMatchObject({ name: PAGE_TOOL, arguments: args })
  return { live, response, call }
}

describe('an agent with `toolData: names`', () => {
  test.each([true, false])(
    'stores only the names of tools that run on the server (stream: %s)',
    async (stream) => {
      const { app, folder, key } = await start(stream)
      await harness.answerWith(
        toolCallResponse(stream ? 'streamed' : 'whole', [{ name: 'weather', args }]),
        1,
      )
      expect((await sendChat(app, 'hello', { key, more: { stream } })).status).toBe(200)
      const [, second] = await harness.listChats()
      expect(JSON.stringify(second?.body)).toContain(RETURNED)
      expect(await listItems(app)).toMatchObject([
        { type: 'message' },
        { type: 'function_call', name: 'weather', arguments: '{}' },
        { type: 'function_call_output', output: 'The result was not stored.' },
        { type: 'message', role: 'assistant' },
      ])
      for (const text of [SENT, RETURNED]) expect(await findText(app, folder, text)).toEqual([])
    },
  )

  test("sends a page tool's arguments to the client but stores neither the arguments nor the result", async () => {
    const { app, folder, visitor } = await start()
    const { response, call } = await streamCall(visitor)
    await answerBriefly(false)
    const output = { type: 'function_call_output' as const, call_id: call.call_id, output: RETURNED }
    const input = [output, { role: 'user' as const, content: 'next' }]
    await visitor.responses.create({ previous_response_id: response.id, input })
    expect(JSON.stringify((await harness.listChats()).at(-1)?.body)).toContain(RETURNED)
    expect(await listItems(app)).toContainEqual(expect.objectContaining({ name: PAGE_TOOL, arguments: '{}' }))
    for (const text of [SENT, RETURNED]) expect(await findText(app, folder, text)).toEqual([])
  })

  test('replays events with the same types and numbers, and returns the call with empty arguments', async () => {
    const { visitor } = await start()
    const { live, response } = await streamCall(visitor)
    const replayed = await collect(await visitor.responses.retrieve(response.id, { stream: true }))
    const numbersOf = (events: readonly { type: string; sequence_number: number }[]) =>
      events.map(({ type, sequence_number }) => [type, sequence_number])
    expect(numbersOf(replayed)).toEqual(numbersOf(live))
    const { output } = await visitor.responses.retrieve(response.id)
    const call = output.at(-1) as OpenAI.Responses.ResponseFunctionToolCall
    expect([call.name, JSON.parse(call.arguments)]).toEqual([PAGE_TOOL, {}])
  })

  test('resumes a chat stream with the same event ids but without the arguments', async () => {
    const { app, key } = await start()
    await callPageTool()
    const { name, parameters } = pageTool
    const tools = [{ type: 'function', function: { name, parameters } }]
    const live = splitStream((await sendChat(app, 'hello', { key, more: { tools } })).text)
    expect(JSON.stringify(live)).toContain('quokka')
    const resumed = splitStream((await resume(app, key, live[0]?.id as string)).text)
    expect(resumed.map(({ id }) => id)).toEqual(live.slice(1).map(({ id }) => id))
    expect(JSON.stringify(resumed)).not.toContain('quokka')
  })

  test('sends the model a note instead of each tool result in later turns', async () => {
    const { visitor } = await start()
    await harness.answerWith(toolCallResponse('whole', [{ name: 'weather', args }]), 1)
    const first = await visitor.responses.create({ input: 'hello' })
    await visitor.responses.create({ input: 'next', previous_response_id: first.id })
    const body = (await harness.listChats()).at(-1)?.body as { messages: object[] }
    expect(body.messages.slice(1)).toMatchObject([
      { role: 'user', content: 'hello' },
      { role: 'assistant', tool_calls: [{ function: { name: 'weather', arguments: '{}' } }] },
      { role: 'tool', content: 'The result was not stored.' },
      { role: 'assistant' },
      { role: 'user', content: 'next' },
    ])
  })
})

test('an agent with an unknown value of toolData is rejected', async () => {
  const { app } = await start()
  const wrong = yaml.replace('toolData: names', 'toolData: some')
  const { status, text } = await app.call('POST', '/v1/agents', { body: { yaml: wrong } })
  expect(status).toBe(400)
  expect(text).toContain('conversations.toolData: must be `full` or `names`')
})
