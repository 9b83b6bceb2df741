/** Creates agents that store conversations, stores chats, and runs the maintenance of conversations. */

import type { APIError } from 'openai'
import { listRetention } from '../../src/agents/agents.ts'
import { createForgetSpending } from '../../src/budgets/subjects.ts'
import { maintainConversations } from '../../src/conversations/conversations.ts'
import type { TestApp } from './app.ts'
import { chatRequest } from './chat-harness.ts'

export const STORING = 'name: Keeper\ninstructions: Keep.\nconversations: { keep: 30d }\n'

/**
 * Creates an agent that stores conversations. Returns its model name, and OpenAI clients that use the parent
 * key and the agent key.
 */
export async function createKeeper(app: TestApp, yaml = STORING) {
  const { agent_id: id, agent_key: key } = await app.createAgent(yaml)
  return { model: `agent/${id}`, owner: app.openai(), visitor: app.openai(key) }
}

/** Returns the error of a rejected request. @throws Error if the request succeeds */
export async function failureOf(request: Promise<unknown>): Promise<APIError> {
  const failed = await request.then(
    () => undefined,
    (error: APIError) => error,
  )
  if (failed === undefined) throw new Error('the request succeeded')
  return failed
}

export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}

/** Sends a chat request to an agent that stores conversations; returns the id of the conversation. */
export async function storeChat(app: TestApp, agentId: string, text: string): Promise<string> {
  const {
    status,
    headers,
    text: answer,
  } = await app.call('POST', '/v1/chat/completions', {
    body: chatRequest(text, { model: `agent/${agentId}` }),
  })
  const id = headers.get('x-parley-conversation')
  if (status !== 200 || id === null) throw new Error(`the chat was not stored: ${answer}`)
  return id
}

/** Runs the maintenance that a server runs every ten minutes. */
export function maintain({ service: { deps } }: TestApp, nowSeconds?: number) {
  const { conversations, config, clock, db, log, sealer, webhooks } = deps
  const forgetSpending = createForgetSpending(db, async () => sealer)
  const { storage, data } = conversations
  const findAgentRetention = (ids: readonly string[]) => listRetention(deps, ids)
  return maintainConversations(
    { config, clock, log, webhooks, storage, data, forgetSpending, findAgentRetention },
    undefined,
    nowSeconds,
  )
}
