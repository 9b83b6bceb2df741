/** Tests OpenAI's agents library and LangChain with the Responses API, which both use by default. */
import { HumanMessage } from '@langchain/core/messages'
import { tool as langchainTool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { startApp, type TestApp } from '../support/app.ts'

const parameters = z.object({ city: z.string() })
const forecast = async ({ city }: z.infer<typeof parameters>) => `Rain in ${city}.`
const about = { name: 'weather', description: 'The weather in a city.' }

describe("OpenAI's agents library", () => {
  const agent = new Agent({
    name: 'Guide',
    instructions: 'Be brief.',
    model: 'mock',
    tools: [tool({ ...about, parameters, execute: forecast })],
  })

  const runnerOf = ({ url, key }: TestApp) => {
    const modelProvider = new OpenAIProvider({ apiKey: key, baseURL: `${url}/v1`, useResponses: true })
    return new Runner({ modelProvider, tracingDisabled: true })
  }

  test('runs client-side tools and continues the conversation', async () => {
    const runner = runnerOf(await startApp())
    const first = await runner.run(agent, 'weather city=Oslo')
    expect(first.finalOutput).toBe('The tool answered: Rain in Oslo.')
    const second = await runner.run(agent, [...first.history, { role: 'user', content: 'and now?' }])
    expect(second.finalOutput).toBe('You said: and now?')
  })

  test('runs client-side tools with streaming', async () => {
    const stream = await runnerOf(await startApp()).run(agent, 'weather city=Oslo', { stream: true })
    await stream.completed
    expect(stream.finalOutput).toBe('The tool answered: Rain in Oslo.')
  })
})

describe("LangChain's ChatOpenAI", () => {
  const weather = langchainTool(forecast, { ...about, schema: parameters })
  const modelOf = ({ url, key }: TestApp) =>
    new ChatOpenAI({
      model: 'mock',
      apiKey: key,
      useResponsesApi: true,
      configuration: { baseURL: `${url}/v1` },
    })

  test('receives tool calls and sends their results', async () => {
    const model = modelOf(await startApp()).bindTools([weather])
    const asked = new HumanMessage('weather city=Oslo')
    const called = await model.invoke([asked])
    expect(called.tool_calls).toMatchObject([{ name: 'weather', args: { city: 'Oslo' } }])
    const result = await weather.invoke(called.tool_calls?.[0] as never)
    expect((await model.invoke([asked, called, result])).text).toBe('The tool answered: Rain in Oslo.')
  })

  test('can stream a response', async () => {
    const texts: string[] = []
    for await (const { text } of await modelOf(await startApp()).stream('one two')) texts.push(text)
    expect(texts.join('')).toBe('You said: one two')
  })
})
