/** What the tests of client libraries share: an agent with a tool of the server's and one of its callers', and a conversation that uses both. */
import { expect } from 'vitest'
import { startApp, type TestApp } from './app.ts'
import type { ChatStand } from './chat-stand.ts'
import { agentWith, answerCalling, bodiesOf, citySchema, tool, type Way } from './tools.ts'

/** The backends every client is tested with. */
export const backends = ['mock', 'gateway'] as const

/** The parameters of `ask`, which callers answer. */
export const askSchema = {
  type: 'object' as const,
  properties: { question: { type: 'string' as const } },
  required: ['question'],
  additionalProperties: false as const,
}

/** A conversation in which a client's tool is called, and a tool of the server's runs unseen. */
export interface Conversation {
  readonly app: TestApp
  readonly baseURL: string
  readonly apiKey: string
  readonly model: string
  /** What the user says; the model calls `ask` then. */
  readonly prompt: string
  /** The client's tool: it answers with a city, and prepares what the model does next. */
  answer(args: { question: string }): Promise<string>
  /** Fails the test unless the last text is the right one and everybody did what was theirs. */
  check(text: string | null | undefined): Promise<void>
}

/**
 * Starts one. With the mock backend the answer quotes the client's tool; through the gateway the model calls the server's `weather`
 * after it, and the answer quotes that.
 */
export async function startConversation(
  stand: ChatStand,
  backend: (typeof backends)[number],
  way: Way,
): Promise<Conversation> {
  const asked: string[] = []
  const weather = tool(({ city }) => `Rain in ${city}`, { inputSchema: citySchema })
  const options = { tools: { weather } }
  const isMock = backend === 'mock'
  const app = isMock ? await startApp({}, options) : await stand.start({}, options)
  const { agent_key } = await app.createAgent(agentWith(['ask', 'weather']))
  const args = '{"question":"Where?"}'
  if (!isMock) await stand.answerWith(answerCalling(way, [{ name: 'ask', args }]), 1)
  return {
    app,
    baseURL: `${app.url}/v1`,
    apiKey: agent_key,
    model: isMock ? 'mock' : 'up-chat',
    prompt: isMock ? `[[tool:ask ${args}]]` : 'What is the weather like?',
    async answer({ question }) {
      asked.push(question)
      const rain = [{ name: 'weather', args: '{"city":"Bonn"}' }]
      if (!isMock) await stand.answerWith(answerCalling(way, rain), 1)
      return 'Bonn'
    },
    async check(text) {
      expect([text, asked]).toEqual([
        isMock ? 'The tool answered: Bonn' : 'Hm. Tool said: Rain in Bonn',
        ['Where?'],
      ])
      if (isMock) return
      const bodies = await bodiesOf(stand)
      expect(bodies.map(({ messages }) => messages.at(-1).content)).toEqual([
        'What is the weather like?',
        'Bonn',
        'Rain in Bonn',
      ])
    },
  }
}

/** A turn of the same agent in which only the server's tool is called. */
export const rainPrompt = '[[tool:weather {"city":"Bonn"}]]'
export const rainAnswer = 'The tool answered: Rain in Bonn'
