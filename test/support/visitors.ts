/** Acts as visitors of an agent that stores conversations, over the tRPC API. */
import { randomUUID } from 'node:crypto'
import type { Client, Outputs } from '../../client/rpc/index.ts'
import type { FeedEvent } from '../../src/visitors/schema.ts'
import type { TestApp } from './app.ts'
import { createTypedClient } from './rpc.ts'

export type { FeedEvent }

/** A visitor with a session: a client that sends the visitor's token. */
export interface TestVisitor {
  readonly id: string
  readonly token: string
  readonly visitor: Client['visitor']
}

/** Starts a session for the visitor to whom `token` belongs, or for a new visitor. */
export async function beginSession(app: TestApp, key: string, token?: string): Promise<TestVisitor> {
  const session = await asVisitor(app, key, token).session.mutate({})
  return { id: session.visitor.id, token: session.token, visitor: asVisitor(app, key, session.token) }
}

/** Returns a client that sends an agent key and, if given, a visitor's token, which may be invalid. */
export function asVisitor(app: Pick<TestApp, 'url'>, key: string, token?: string): Client['visitor'] {
  const headers = {
    Authorization: `Bearer ${key}`,
    ...(token !== undefined && { 'X-Parley-Visitor': token }),
  }
  return createTypedClient(app as TestApp, headers).visitor
}

type SendResult = Outputs['visitor']['send']
/** A message that a model answers. */
export type Sent = SendResult & { readonly turn: NonNullable<SendResult['turn']> }

/** Sends a message with a new client id. @throws Error if no model answers it */
export async function say(
  { visitor }: Pick<TestVisitor, 'visitor'>,
  text: string,
  more: Partial<Parameters<Client['visitor']['send']['mutate']>[0]> = {},
): Promise<Sent> {
  const sent = await visitor.send.mutate({ client_id: randomUUID(), text, ...more })
  if (sent.turn === null) throw new Error('no model answers')
  return { ...sent, turn: sent.turn }
}

/** Reads the feed until `isLast` returns true for an event; returns all events up to and including it. */
export async function followUntil(
  { visitor }: Pick<TestVisitor, 'visitor'>,
  query: { readonly conversation: string; readonly cursor?: string },
  isLast: (event: FeedEvent, events: readonly FeedEvent[]) => boolean,
): Promise<FeedEvent[]> {
  const leaving = new AbortController()
  const events: FeedEvent[] = []
  try {
    for await (const event of await visitor.follow.query(query, { signal: leaving.signal })) {
      events.push(event)
      if (isLast(event, events)) break
    }
  } finally {
    leaving.abort()
  }
  return events
}

export function isEnd(event: FeedEvent): boolean {
  return event.event === 'conversation.turn.ended'
}

/** Sends a message and waits for the end of its turn; returns the events after the start of the turn. */
export async function sayAndWait(
  one: Pick<TestVisitor, 'visitor'>,
  text: string,
  more: Parameters<typeof say>[2] = {},
) {
  const sent = await say(one, text, more)
  const { conversation, cursor } = sent
  return { sent, events: await followUntil(one, { conversation: conversation.id, cursor }, isEnd) }
}

export function deltaText(events: readonly FeedEvent[]): string {
  return events
    .map((event) => (event.event === 'conversation.turn.delta' ? (event.data.text ?? '') : ''))
    .join('')
}
