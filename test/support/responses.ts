/** Sends requests to the Responses API and parses its streams. */
import type { ResponseEvent } from '../../src/conversations/response-schema.ts'
import type { Answer, TestApp } from './app.ts'

export const RESPONSES = '/v1/responses'

export function respond(app: TestApp, body: object, key = app.key): Promise<Answer> {
  return app.call('POST', RESPONSES, { key, body })
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into events of every kind
export type AnyEvent = { type: ResponseEvent['type']; sequence_number: number } & Record<string, any>

/** Sends a streaming request; checks the names and sequence numbers of the events. */
export async function streamResponse(
  app: TestApp,
  body: object,
  key = app.key,
): Promise<Answer & { events: AnyEvent[]; types: string[]; last: AnyEvent }> {
  const answer = await respond(app, { ...body, stream: true }, key)
  const events = readResponseEvents(answer.text)
  return { ...answer, events, types: events.map(({ type }) => type), last: events.at(-1) as AnyEvent }
}

/** Parses a stream's events. @throws Error for a malformed event or a wrong sequence number. */
export function readResponseEvents(text: string): AnyEvent[] {
  const blocks = text.split('\n\n').filter((block) => block !== '' && !block.startsWith(':'))
  return blocks.map((block, index) => {
    const [, name, data] = /^event: (\S+)\ndata: ([^\n]*)$/.exec(block) ?? []
    const event: AnyEvent = JSON.parse(data ?? 'null')
    if (event?.type !== name || event?.sequence_number !== index) throw new Error(`misplaced event: ${block}`)
    return event
  })
}

/** Returns the event types without the prefix `response.` and without consecutive duplicates. */
export function listEventTypes(types: readonly string[]): string[] {
  return types
    .map((type) => type.replace('response.', ''))
    .filter((type, index, all) => type !== all[index - 1])
}
