/** Starts visitors' conversations, changes their modes, sends people's messages, and reads feeds. */
import { randomUUID } from 'node:crypto'
import { systemClock } from '../../src/lib/clock.ts'
import type { Answer, TestApp } from './app.ts'
import type { ChatHarness } from './chat-harness.ts'
import { storingAgent } from './stored-chats.ts'
import { beginSession, type FeedEvent, sayAndWait } from './visitors.ts'

/** Starts a service with an agent that has `handover`, and a session of a visitor. */
export async function startVisit(harness: ChatHarness, handover: object = {}, clock = systemClock) {
  const app = await harness.start({}, { clock })
  const { agent_key: key, agent_id: agent } = await app.createAgent(storingAgent({ handover }))
  return { app, key, agent, one: await beginSession(app, key) }
}

/** Like `startVisit`; also starts a conversation, in which the visitor has received an answer. */
export async function startConversation(harness: ChatHarness, handover: object = {}) {
  const visit = await startVisit(harness, handover)
  const { sent } = await sayAndWait(visit.one, 'Hello.')
  const id = sent.conversation.id
  const write = (text: string, client_id = randomUUID()) =>
    visit.one.visitor.send.mutate({ conversation: id, client_id, text })
  return { ...visit, id, write }
}

interface SentMessage {
  readonly role: string
  readonly content: string
}

/** Returns the messages of the last chat request that the provider has received. */
export async function readMessages(harness: ChatHarness): Promise<readonly SentMessage[]> {
  const bodies = (await harness.listChats()).map(({ body }) => body as { messages: SentMessage[] })
  return bodies.at(-1)?.messages ?? []
}

/** Changes a conversation's mode or adds a message to it, by default with the parent key. */
export function change(
  app: TestApp,
  conversation: string,
  what: 'handover' | 'takeover' | 'handback' | 'messages',
  body: object = {},
  options: { readonly key?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Answer> {
  return app.call('POST', `/v1/conversations/${conversation}/${what}`, { ...options, body })
}

/** Sends a person's message with a new client id. */
export function answer(app: TestApp, conversation: string, text: string, more: object = {}): Promise<Answer> {
  return change(app, conversation, 'messages', { text, client_id: randomUUID(), ...more })
}

export function textsOf(events: readonly FeedEvent[]): (string | undefined)[] {
  return events.flatMap((event) => (event.event === 'conversation.item' ? [event.data.item.text] : []))
}

/** Returns the modes that a feed reports, in order. */
export function modesOf(events: readonly FeedEvent[]): string[] {
  return events.flatMap((event) => (event.event === 'conversation.mode' ? [event.data.mode] : []))
}

export const isMode = (mode: string) => (event: FeedEvent) =>
  event.event === 'conversation.mode' && event.data.mode === mode
