/** Provides a conversation with a client-side and a server-side tool for tests of client libraries. */
import { expect } from 'vitest'
import { startApp, type TestApp } from './app.ts'
import type { ChatHarness } from './chat-harness.ts'
import { agentWith, citySchema, listRequestBodies, tool, toolCallResponse, type Way } from './tools.ts'

/** The model providers with which every client library is tested. */
export const backends = ['mock', 'gateway'] as const

/** The parameter schema of the client-side tool `ask`. */
export const askSchema = {
  type: 'object' as const,
  properties: { question: { type: 'string' as const } },
  required: ['question'],
  additionalProperties: false as const,
}

/** A conversation in which the model calls a client-side tool and, with the gateway, a server-side tool. */
export interface Conversation {
  readonly app: TestApp
  readonly baseURL: string
  readonly apiKey: string
  readonly model: string
  /** The user message that makes the model call `ask`. */
  readonly prompt: string
  /** Implements the client-side tool: returns a city. With the gateway, scripts the model's next response. */
  answer(args: { question: string }): Promise<string>
  /** Asserts the final text and the tool calls. */
  check(text: string | null | undefined): Promise<void>
}

export async function startConversation(
  harness: ChatHarness,
  backend: (typeof backends)[number],
  way: Way,
): Promise<Conversation> {
  const asked: string[] = []
  const weather = tool(({ city }) => `Rain in ${city}`, { inputSchema: citySchema })
  const options = { tools: { weather } }
  const isMock = backend === 'mock'
  const app = isMock ? await startApp({}, options) : await harness.start({}, options)
  const { agent_key } = await app.createAgent(agentWith(['ask', 'weather']))
  const args = '{"question":"Where?"}'
  if (!isMock) await harness.answerWith(toolCallResponse(way, [{ name: 'ask', args }]), 1)
  return {
    app,
    baseURL: `${app.url}/v1`,
    apiKey: agent_key,
    model: isMock ? 'mock' : 'up-chat',
    prompt: isMock ? `[[tool:ask ${args}]]` : 'What is the weather like?',
    async answer({ question }) {
      asked.push(question)
      const rain = [{ name: 'weather', args: '{"city":"Bonn"}' }]
      if (!isMock) await harness.answerWith(toolCallResponse(way, rain), 1)
      return 'Bonn'
    },
    async check(text) {
      expect([text, asked]).toEqual([
        isMock ? 'The tool answered: Bonn' : 'Hm. Tool said: Rain in Bonn',
        ['Where?'],
      ])
      if (isMock) return
      const bodies = await listRequestBodies(harness)
      expect(bodies.map(({ messages }) => messages.at(-1).content)).toEqual([
        'What is the weather like?',
        'Bonn',
        'Rain in Bonn',
      ])
    },
  }
}

/** A user message that makes the mock model call only the server-side tool. */
export const serverToolPrompt = '[[tool:weather {"city":"Bonn"}]]'
export const serverToolAnswer = 'The tool answered: Rain in Bonn'
