/** Starts apps with agents that store their conversations. */
import type { APIError } from 'openai'
import type { TestApp } from './app.ts'

export const STORING = 'name: Keeper\ninstructions: Keep.\nconversations: { keep: 30d }\n'

/** Creates a storing agent; returns its model name and official clients with the parent key and with the agent's key. */
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
