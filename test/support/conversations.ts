/** Starts services with agents that store conversations, and looks for text in their data. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { listRetention } from '../../src/agents/agents.ts'
import { maintainConversations } from '../../src/conversations/conversations.ts'
import type { TestApp } from './app.ts'
import { chatRequest } from './chat-harness.ts'

export const STORING = `name: Keeper
instructions: Answer briefly.
conversations:
  keep: 30d
`

/** Sends a chat request to be stored; returns the id of its conversation. */
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
  const { conversations, config, clock, log } = deps
  const { storage } = conversations
  const findAgentRetention = (ids: readonly string[]) => listRetention(deps, ids)
  return maintainConversations({ config, clock, log, storage, findAgentRetention }, undefined, nowSeconds)
}

/** Lists the files in a folder that contain `text`. */
export async function listFilesWith(folder: string, text: string): Promise<string[]> {
  const found: string[] = []
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    if ((await readFile(path)).includes(text)) found.push(entry.name)
  }
  return found
}
