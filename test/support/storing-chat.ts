/** Runs an agent's stored turns and reads them as the agent's owner. */
import type { TestApp } from './app.ts'

export const KEEPER = 'name: Keeper\ninstructions: Help people.\nconversations:\n  keep: 30d\n'

/** Runs one turn; returns the answer, and the ids of the response, the turn and the conversation. */
export async function runTurn(app: TestApp, key: string, input: string, more: object = {}) {
  const answer = await app.call('POST', '/v1/responses', { key, body: { model: 'mock', input, ...more } })
  const turn = answer.headers.get('x-parley-turn') as string
  const { body } = await app.call('GET', `/v1/turns/${turn}`)
  return { answer, responseId: answer.body.id as string, turn, conversation: body.conversation_id as string }
}
