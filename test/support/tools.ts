/** Builds server-side tools and agents that use them, sends chats, and reads tool calls and results. */

import type { ServiceOptions } from '../../src/server/build.ts'
import type { HostTool } from '../../src/server/service.ts'
import type { StreamedAnswer, TestApp } from './app.ts'
import { type ChatHarness, chatRequest } from './chat-harness.ts'

export const CHAT = '/v1/chat/completions'

export function tool(handler: HostTool['handler'], more: Omit<HostTool, 'handler'> = {}): HostTool {
  return { ...more, handler }
}

/** Input schema of most test tools. */
export const citySchema = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1 } },
  required: ['city'],
} as const

/** Returns an agent definition with these tools as JSON. */
export function agentWith(tools: readonly unknown[], name = 'A'): string {
  return JSON.stringify({ name, instructions: 'B', tools })
}

/** The result of a chat completion, streamed or not. */
export interface Outcome {
  readonly content: string
  readonly calls: readonly string[]
  readonly finishes: readonly string[]
}

export type Way = 'whole' | 'streamed'
export const ways: readonly Way[] = ['whole', 'streamed']

/** Sends a chat completion request. @throws Error unless the status is 200 */
export async function chat(app: TestApp, way: Way, key: string, body: object): Promise<Outcome> {
  if (way === 'streamed') return outcomeOf(await app.stream(body, key))
  const answer = await app.call('POST', CHAT, { key, body })
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
  const [{ message, finish_reason }] = answer.body.choices
  return {
    content: message.content ?? '',
    calls: (message.tool_calls ?? []).map(nameOfCall),
    finishes: [finish_reason],
  }
}

export function outcomeOf({ status, text, events }: StreamedAnswer): Outcome {
  if (status !== 200) throw new Error(`${status} ${text}`)
  const choices = events.flatMap((chunk) => chunk.choices ?? [])
  return {
    content: choices.map(({ delta }) => delta.content ?? '').join(''),
    calls: choices.flatMap(({ delta }) => delta.tool_calls ?? []).map(nameOfCall),
    finishes: choices.map((choice) => choice.finish_reason).filter((reason) => reason !== null),
  }
}

function nameOfCall(call: { function: { name: string } }): string {
  return call.function.name
}

/** Lists the bodies of the provider's requests, oldest first. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
export async function listRequestBodies(harness: ChatHarness): Promise<any[]> {
  return (await harness.listChats()).map(({ body }) => body)
}

/** Makes the model call a tool; returns the result that the model receives. */
export async function resultOf(
  harness: ChatHarness,
  app: TestApp,
  name: string,
  args = '{}',
): Promise<string> {
  const { agent_key } = await app.createAgent(agentWith([name]))
  await harness.answerWith(toolCallResponse('whole', [{ name, args }]), 1)
  const { finishes } = await chat(app, 'whole', agent_key, chatRequest('hello'))
  if (finishes[0] !== 'stop') throw new Error(`the turn ended with ${finishes}`)
  return resultsIn((await listRequestBodies(harness)).at(-1))[0] ?? 'nothing'
}

/** Lists the contents of the tool messages in a request body. */
export function resultsIn(body: { messages: { role: string; content: string }[] }): string[] {
  return body.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
}

export function withHostTools(tools: Record<string, HostTool>): Pick<ServiceOptions, 'tools'> {
  return { tools }
}

const names = { id: 'chatcmpl-x', created: 1, model: 'up-chat' }
const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 }

/** Builds a provider's response with text and tool calls, either whole or as stream events. */
export function toolCallResponse(
  way: Way,
  calls: readonly { name: string; args?: string; more?: object }[],
  said: object = { content: 'Hm. ' },
): object | object[] {
  const tool_calls = calls.map(({ name, args = '{}', more = {} }, index) => ({
    index,
    id: `call_${index}_${name}`,
    type: 'function',
    ...more,
    function: { name, arguments: args },
  }))
  if (way === 'whole') {
    const message = { role: 'assistant', content: null, ...said, tool_calls: tool_calls.map(withoutIndex) }
    const choices = [{ index: 0, message, finish_reason: 'tool_calls' }]
    return { ...names, object: 'chat.completion', choices, usage }
  }
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...names,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason }],
  })
  return [
    chunk({ role: 'assistant', content: '' }),
    chunk(said),
    ...tool_calls.map((call) => chunk({ tool_calls: [call] })),
    chunk({}, 'tool_calls'),
    { ...names, object: 'chat.completion.chunk', choices: [], usage },
  ]
}

function withoutIndex({ index: _, ...call }: { index: number }): object {
  return call
}
