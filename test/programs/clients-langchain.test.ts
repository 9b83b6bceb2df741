/** Tests LangChain's chat model with client-side and server-side tools. */
import { type AIMessageChunk, type BaseMessage, HumanMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { startChatHarness } from '../support/chat-harness.ts'
import {
  backends,
  type Conversation,
  serverToolAnswer,
  serverToolPrompt,
  startConversation,
} from '../support/clients.ts'
import type { Way } from '../support/tools.ts'

const harness = await startChatHarness()

/** Runs a tool loop like LangChain's agents; returns the text of the final message. */
async function converse(
  { baseURL, apiKey, model, answer }: Conversation,
  prompt: string,
  way: Way,
): Promise<string> {
  const ask = tool(answer, {
    name: 'ask',
    description: 'Asks the user.',
    schema: z.object({ question: z.string() }),
  })
  const chat = new ChatOpenAI({ model, apiKey, configuration: { baseURL }, maxRetries: 0 }).bindTools([ask])
  const messages: BaseMessage[] = [new HumanMessage(prompt)]
  for (;;) {
    const said = way === 'whole' ? await chat.invoke(messages) : await join(await chat.stream(messages))
    messages.push(said)
    if (!said.tool_calls?.length) return said.text
    for (const call of said.tool_calls) messages.push(await ask.invoke({ ...call, type: 'tool_call' }))
  }
}

async function join(chunks: AsyncIterable<AIMessageChunk>): Promise<AIMessageChunk> {
  let joined: AIMessageChunk | undefined
  for await (const chunk of chunks) joined = joined?.concat(chunk) ?? chunk
  if (joined === undefined) throw new Error('the stream was empty')
  return joined
}

describe.each(backends)('ChatOpenAI with the %s', (backend) => {
  test.each<Way>(['whole', 'streamed'])('calls its tools (%s)', async (way) => {
    const conversation = await startConversation(harness, backend, way)
    await conversation.check(await converse(conversation, conversation.prompt, way))
  })
})

test('ChatOpenAI does not see calls to server-side tools', async () => {
  const conversation = await startConversation(harness, 'mock', 'streamed')
  expect(await converse(conversation, serverToolPrompt, 'streamed')).toBe(serverToolAnswer)
})
