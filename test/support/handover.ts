/** Changes the modes of conversations, sends people's messages, and reads the events of feeds. */
import { randomUUID } from 'node:crypto'
import type { Answer, TestApp } from './app.ts'
import type { FeedEvent } from './visitors.ts'

/** Changes or answers a conversation with the parent key, or with other credentials. */
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

/** The texts of a feed's messages. */
export function textsOf(events: readonly FeedEvent[]): (string | undefined)[] {
  return events.flatMap((event) => (event.event === 'conversation.item' ? [event.data.item.text] : []))
}

/** The modes that a feed reports, in order. */
export function modesOf(events: readonly FeedEvent[]): string[] {
  return events.flatMap((event) => (event.event === 'conversation.mode' ? [event.data.mode] : []))
}

/** Returns a function that tests whether an event reports the mode. */
export const isMode = (mode: string) => (event: FeedEvent) =>
  event.event === 'conversation.mode' && event.data.mode === mode
