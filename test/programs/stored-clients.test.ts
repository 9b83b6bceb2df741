/** Tests stored conversations with unmodified client libraries other than the official one. */
import { createOpenAI } from '@ai-sdk/openai'
import { HumanMessage } from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import { Agent, tool as agentTool, OpenAIConversationsSession, OpenAIProvider, Runner } from '@openai/agents'
import { generateText, isStepCount, streamText, tool } from 'ai'
import { createEventSource } from 'eventsource-client'
import type OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { systemClock } from '../../src/lib/clock.ts'
import { startAnswerCutter } from '../support/answer-cutter.ts'
import { startChatHarness } from '../support/chat-harness.ts'
import { collect, createKeeper } from '../support/conversations.ts'
import { toolCallResponse } from '../support/tools.ts'

const harness = await startChatHarness()
const inputSchema = z.object({ city: z.string() })
const about = { description: 'The weather in a city.' }
const forecast = async ({ city }: z.infer<typeof inputSchema>) => `Rain in ${city}.`
const CALL = [{ name: 'weather', args: '{"city":"Oslo"}' }]

async function start() {
  const app = await harness.start({ PARLEY_RECONNECT_SECONDS: '60' }, { clock: systemClock })
  const keeper = await createKeeper(app)
  return { app, baseURL: `${app.url}/v1`, apiKey: app.key, ...keeper }
}

type Started = Awaited<ReturnType<typeof start>>

/**
 * Lists the roles and contents that the model received in its last call, without the agent's instructions.
 */
async function lastHeard(): Promise<(readonly [string, unknown])[]> {
  const last = (await harness.listChats()).at(-1)?.body as { messages: { role: string; content: unknown }[] }
  return last.messages
    .filter(({ role }) => role !== 'system')
    .map(({ role, content }) => [role, content] as const)
}

const TWO_TURNS = [
  ['user', 'My name is Ada. {{up:text Hello Ada.}}'],
  ['assistant', 'Hello Ada.'],
  ['user', 'What is my name?'],
] as const
const [[, FIRST], , [, SECOND]] = TWO_TURNS

const AFTER_TOOL = [
  ['user', 'How is the weather?'],
  ['assistant', 'Hm. '],
  ['tool', 'Rain in Oslo.'],
] as const

describe('the AI SDK with @ai-sdk/openai', () => {
  const modelOf = ({ baseURL, apiKey, model }: Started) => createOpenAI({ baseURL, apiKey }).responses(model)

  test('continues a response with previousResponseId', async () => {
    const started = await start()
    const model = modelOf(started)
    const first = await generateText({ model, prompt: FIRST })
    const previousResponseId = first.finalStep.providerMetadata?.openai?.responseId as string
    const result = streamText({ model, prompt: SECOND, providerOptions: { openai: { previousResponseId } } })
    expect(await result.text).toContain('What is my name?')
    expect(await result.finishReason).toBe('stop')
    expect(await lastHeard()).toEqual(TWO_TURNS)
  })

  test('adds turns to a conversation', async () => {
    const started = await start()
    const { id: conversation } = await started.owner.conversations.create()
    const request = { model: modelOf(started), providerOptions: { openai: { conversation } } }
    await generateText({ ...request, prompt: FIRST })
    await generateText({ ...request, prompt: SECOND })
    expect(await lastHeard()).toEqual(TWO_TURNS)
    expect(await collect(started.owner.conversations.items.list(conversation))).toHaveLength(4)
  })

  test.each(['whole', 'streamed'] as const)(
    'sends the result of its tool with references to stored items (%s)',
    async (way) => {
      const model = modelOf(await start())
      await harness.answerWith(toolCallResponse(way, CALL), 1)
      const tools = { weather: tool({ ...about, inputSchema, execute: forecast }) }
      const request = { model, prompt: AFTER_TOOL[0][1], tools, stopWhen: isStepCount(3) }
      const text = way === 'whole' ? (await generateText(request)).text : await streamText(request).text
      expect(text).toBe('Tool said: Rain in Oslo.')
      expect(await lastHeard()).toEqual(AFTER_TOOL)
    },
  )

  test('can send the whole history with `store: false`', async () => {
    const started = await start()
    const request = { model: modelOf(started), providerOptions: { openai: { store: false } } }
    const messages = TWO_TURNS.map(([role, content]) => ({ role, content }))
    const { text } = await generateText({ ...request, messages })
    expect(text).toContain('What is my name?')
    expect(await lastHeard()).toEqual(TWO_TURNS)
    expect((await started.app.call('GET', '/v1/conversations')).body.data).toEqual([])
  })

  test('can stream a stored chat', async () => {
    const { baseURL, apiKey, model } = await start()
    const result = streamText({ model: createOpenAI({ baseURL, apiKey }).chat(model), prompt: FIRST })
    expect([await result.text, await result.finishReason]).toEqual(['Hello Ada.', 'stop'])
  })

  test('does not report a cancelled response as finished', async () => {
    const started = await start()
    const prompt = '{{up:hang-after 3}}'
    const result = streamText({ model: modelOf(started), prompt, include: { rawChunks: true } })
    for await (const part of result.stream) {
      const event = part.type === 'raw' ? (part.rawValue as OpenAI.Responses.ResponseStreamEvent) : undefined
      if (event?.type === 'response.created') await started.owner.responses.cancel(event.response.id)
    }
    expect(await result.finishReason).toBe('other')
  })
})

describe("OpenAI's agents library", () => {
  const runnerOf = ({ owner }: Started) =>
    new Runner({ modelProvider: new OpenAIProvider({ openAIClient: owner }), tracingDisabled: true })
  const agentOf = ({ model }: Started) => new Agent({ name: 'Guide', model })
  const toolAgentOf = ({ model }: Started) =>
    new Agent({
      name: 'Guide',
      model,
      tools: [agentTool({ name: 'weather', ...about, parameters: inputSchema, execute: forecast })],
    })

  test('stores a session with OpenAIConversationsSession', async () => {
    const started = await start()
    const session = new OpenAIConversationsSession({ client: started.owner })
    await runnerOf(started).run(agentOf(started), FIRST, { session })
    await runnerOf(started).run(agentOf(started), SECOND, { session })
    expect(await lastHeard()).toEqual(TWO_TURNS)
    const items = (await session.getItems()) as { role: string }[]
    expect(items.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect(await session.popItem()).toMatchObject({ role: 'assistant' })
    expect(await session.getItems()).toHaveLength(3)
    const id = await session.getSessionId()
    await session.clearSession()
    expect((await started.app.call('GET', `/v1/conversations/${id}`)).status).toBe(404)
  })

  test('stores the calls and results of its tools in a session', async () => {
    const started = await start()
    const session = new OpenAIConversationsSession({ client: started.owner })
    await harness.answerWith(toolCallResponse('whole', CALL), 1)
    const { finalOutput } = await runnerOf(started).run(toolAgentOf(started), AFTER_TOOL[0][1], { session })
    expect(finalOutput).toBe('Tool said: Rain in Oslo.')
    const items = (await session.getItems()) as { type: string }[]
    expect(items.map(({ type }) => type)).toEqual([
      'message',
      'message',
      'function_call',
      'function_call_result',
      'message',
    ])
    await runnerOf(started).run(toolAgentOf(started), SECOND, { session })
    expect((await lastHeard()).map(([role]) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ])
  })

  test.each([false, true])(
    'continues with conversationId, even after a tool call (stream: %s)',
    async (stream) => {
      const started = await start()
      const { id: conversationId } = await started.owner.conversations.create()
      await harness.answerWith(toolCallResponse(stream ? 'streamed' : 'whole', CALL), 1)
      const run = async (text: string) => {
        if (!stream) return runnerOf(started).run(toolAgentOf(started), text, { conversationId })
        const result = await runnerOf(started).run(toolAgentOf(started), text, { conversationId, stream })
        await result.completed
        return result
      }
      expect((await run(AFTER_TOOL[0][1])).finalOutput).toBe('Tool said: Rain in Oslo.')
      expect(await lastHeard()).toEqual(AFTER_TOOL)
      await run(SECOND)
      expect(await lastHeard()).toEqual([
        ...AFTER_TOOL,
        ['assistant', 'Tool said: Rain in Oslo.'],
        ['user', SECOND],
      ])
    },
  )

  test('continues with previousResponseId', async () => {
    const started = await start()
    const { lastResponseId } = await runnerOf(started).run(agentOf(started), FIRST)
    expect(lastResponseId).toMatch(/^resp_/)
    await runnerOf(started).run(agentOf(started), SECOND, { previousResponseId: lastResponseId as string })
    expect(await lastHeard()).toEqual(TWO_TURNS)
  })
})

describe("LangChain's ChatOpenAI", () => {
  const modelOf = ({ baseURL, apiKey, model }: Started) =>
    new ChatOpenAI({ model, apiKey, useResponsesApi: true, configuration: { baseURL } })

  test('continues a response with previous_response_id', async () => {
    const model = modelOf(await start())
    const first = await model.invoke(FIRST)
    const options = { previous_response_id: first.response_metadata.id as string }
    expect((await model.invoke(SECOND, options)).text).toContain('What is my name?')
    expect(await lastHeard()).toEqual(TWO_TURNS)
    const texts = await collect(await model.stream(SECOND, options))
    expect(texts.map(({ text }) => text).join('')).toContain('What is my name?')
    expect(await lastHeard()).toEqual(TWO_TURNS)
  })

  test('can send earlier answers as input', async () => {
    const model = modelOf(await start())
    const asked = new HumanMessage(FIRST)
    await model.invoke([asked, await model.invoke([asked]), new HumanMessage(SECOND)])
    expect(await lastHeard()).toEqual(TWO_TURNS)
  })
})

describe('eventsource-client', () => {
  test('resumes a chat request after each lost connection and receives each event once', async () => {
    const { app, baseURL, apiKey, model } = await start()
    const cutter = await startAnswerCutter(app.url, () =>
      cutter.cuts < 3 ? 1_500 : Number.POSITIVE_INFINITY,
    )
    const messages = [{ role: 'user', content: '{{up:chunks 60}}{{up:delay 5}}' }]
    const source = createEventSource({
      url: `${cutter.url}${new URL(baseURL).pathname}/chat/completions`,
      method: 'POST',
      headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ model, messages, stream: true }),
    })
    const ids: string[] = []
    let text = ''
    for await (const { id, data } of source) {
      if (data === '[DONE]') break
      ids.push(id as string)
      text += JSON.parse(data).choices[0].delta.content ?? ''
    }
    source.close()
    expect(text).toBe(Array.from({ length: 60 }, (_, index) => `w${index} `).join(''))
    expect(ids.map((id) => Number(id.split('.')[1]))).toEqual(ids.map((_, index) => index))
    expect(cutter.cuts).toBe(3)
    expect(await harness.listChats()).toHaveLength(1)
  })
})
