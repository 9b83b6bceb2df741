/** Renders stored turns as responses and as events, with the same result each time. */

import type { LogEntry } from '../conversations/conversations.ts'
import type { ResponseObject, UnnumberedEvent } from '../conversations/response-schema.ts'
import { createItemIds, endOf, pieceOf } from '../conversations/turn-output.ts'
import { ServiceError } from '../lib/errors.ts'
import { EventStream } from '../operations/operation.ts'
import { Answer, conversationIdOf } from './answer.ts'
import type { ResponsesRequest } from './schema.ts'

/** The parts of a turn that appear in its response. */
export interface ResponseView {
  readonly turnId: string
  readonly responseId: string
  /** Unix seconds. */
  readonly createdAt: number
  readonly request: ResponsesRequest
}

export function toView(row: {
  readonly id: string
  readonly response_id: string | null
  readonly created_at: number
  readonly request: string
}): ResponseView {
  return {
    turnId: row.id,
    responseId: row.response_id ?? '',
    createdAt: row.created_at,
    request: JSON.parse(row.request),
  }
}

/**
 * Renders a response from the entries so far. Its status is `in_progress` unless the entries contain the end
 * of the turn.
 */
export function renderResponse(view: ResponseView, entries: Iterable<LogEntry>): ResponseObject {
  const renderer = new Renderer(view, () => {})
  let response: ResponseObject | undefined
  for (const entry of entries) response = renderer.take(entry) ?? response
  return response ?? renderer.answer.current('in_progress')
}

export async function readResponse(
  view: ResponseView,
  entries: AsyncIterable<LogEntry>,
): Promise<ResponseObject> {
  const renderer = new Renderer(view, () => {})
  let response: ResponseObject | undefined
  for await (const entry of entries) response = renderer.take(entry) ?? response
  return response ?? renderer.answer.current('in_progress')
}

export function renderQueued(view: ResponseView): ResponseObject {
  return new Renderer(view, () => {}).answer.current('queued')
}

/** Streams the events after the sequence number `after`; -1 for all. */
export function streamResponse(
  view: ResponseView,
  entries: AsyncIterable<LogEntry>,
  after: number,
): EventStream {
  return new EventStream(toEvents(view, entries, after), (failure) => {
    const error = { type: 'error', code: failure.code, message: failure.message, param: null }
    return Buffer.from(`event: error\ndata: ${JSON.stringify(error)}\n\n`)
  })
}

async function* toEvents(
  view: ResponseView,
  entries: AsyncIterable<LogEntry>,
  after: number,
): AsyncGenerator<Uint8Array, void, void> {
  const encoder = new EventEncoder(after)
  const renderer = new Renderer(view, (event) => encoder.add(event))
  for await (const entry of entries) {
    renderer.take(entry)
    const bytes = encoder.take()
    if (bytes !== undefined) yield bytes
  }
}

export function createAnswer(
  { responseId, createdAt, request }: ResponseView,
  newItemId: (prefix: string) => string,
  onEvent: (event: UnnumberedEvent) => void,
): Answer {
  const identity = {
    id: responseId,
    createdAt,
    newItemId,
    store: true,
    background: request.background === true,
    previousResponseId: request.previous_response_id ?? null,
    conversationId: conversationIdOf(request.conversation) ?? null,
  }
  return new Answer(identity, request, onEvent)
}

/** Encodes events and numbers them from 0. */
export class EventEncoder {
  private text = ''
  private number = 0
  private readonly after: number

  /** Omits the events up to the sequence number `after`. */
  constructor(after: number) {
    this.after = after
  }

  add({ type, ...event }: UnnumberedEvent): void {
    const { number } = this
    this.number += 1
    if (number > this.after)
      this.text += `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number, ...event })}\n\n`
  }

  /** Returns the events since the last call; undefined if nothing is new. */
  take(): Uint8Array | undefined {
    const bytes = this.text === '' ? undefined : Buffer.from(this.text)
    this.text = ''
    return bytes
  }
}

class Renderer {
  readonly answer: Answer

  constructor(view: ResponseView, onEvent: (event: UnnumberedEvent) => void) {
    this.answer = createAnswer(view, createItemIds(view.turnId), onEvent)
  }

  /** Returns the response if the entry ends it. */
  take(entry: LogEntry): ResponseObject | undefined {
    const piece = pieceOf(entry)
    if (piece !== undefined) this.answer.take(piece)
    const end = endOf(entry)
    if (end === undefined) return undefined
    return end.failure === undefined || end.interruption !== undefined
      ? this.answer.end(end.at, end.interruption)
      : this.answer.fail(end.failure)
  }
}

/** @throws ServiceError `stream_expired` */
export function assertReplayable(isReplayOver: boolean): void {
  if (isReplayOver)
    throw new ServiceError(
      'invalid_value',
      'starting_after: the events of this response are no longer stored',
      {
        param: 'starting_after',
        code: 'stream_expired',
      },
    )
}
