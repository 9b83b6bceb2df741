/** Splits runs of server-sent events, and numbers the events of a stream that can be resumed. */
import { createHmac } from 'node:crypto'
import { DONE } from '../http/sse.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { endOf } from './turn-output.ts'
import type { LogEntry } from './turns/segments.ts'

const BOUNDARY = '\n\n'
const CAPABILITY_LENGTH = 22

/** Yields the complete events of a run. */
export function* splitEvents(run: Buffer): Generator<Buffer, void, void> {
  for (let start = 0; start < run.length; ) {
    const end = run.indexOf(BOUNDARY, start) + BOUNDARY.length
    yield run.subarray(start, end)
    start = end
  }
}

/** The number of the last event that a client has received, and the capability of its stream. */
export interface EventId {
  readonly capability: string
  readonly number: number
}

/** Returns the capability of a turn's stream, which is always the same. */
export function deriveCapability(key: Parameters<typeof createHmac>[1], turnId: string): string {
  let block = 0
  // Returns new bytes for each call, because `newId` cannot use all bytes and may ask for more.
  return newId('', CAPABILITY_LENGTH, (count) =>
    createHmac('sha512', key).update(`${turnId}:${block++}`).digest().subarray(0, count),
  )
}

export function parseEventId(text: string): EventId | undefined {
  const match = /^([0-9A-Za-z]{22})\.(0|[1-9]\d{0,8})$/.exec(text)
  return match === null ? undefined : { capability: match[1] as string, number: Number(match[2]) }
}

/** Whether a client may receive an entry. */
export function isPublic({ kind }: LogEntry): boolean {
  return kind !== 'step'
}

/**
 * Renders a chat stream: adds ids, which count from 0, to the events after number `after`, and ends like
 * every chat stream. Without a capability, the events have no ids.
 * @throws ServiceError `event_not_kept`, or `stream_interrupted` after the last event of an answer that was
 * stopped
 */
export async function* toChatStream(
  entries: AsyncIterable<LogEntry>,
  { capability, after }: { readonly capability: string | undefined; readonly after: number },
): AsyncGenerator<Uint8Array, void, void> {
  let number = 0
  let hasFailed = false
  let isInterrupted = false
  for await (const entry of entries) {
    if (endOf(entry)?.interruption !== undefined) isInterrupted = true
    if (!isPublic(entry)) continue
    hasFailed = entry.kind === 'failure'
    if (number > after)
      yield capability === undefined
        ? entry.bytes
        : Buffer.concat([Buffer.from(`id: ${capability}.${number}\n`), entry.bytes])
    number += 1
  }
  if (number <= after)
    throw new ServiceError(
      'conflict',
      `Last-Event-ID: this event was not stored; the last stored event is ${number - 1}. Read the turn again.`,
      {
        code: 'event_not_kept',
        ...(capability !== undefined && number > 0 && { lastEventId: `${capability}.${number - 1}` }),
      },
    )
  if (isInterrupted && !hasFailed) throw answerInterrupted()
  if (!hasFailed) yield Buffer.from(DONE)
}

export function answerInterrupted(): ServiceError {
  return new ServiceError('service_unavailable', 'The answer was interrupted.', {
    code: 'stream_interrupted',
  })
}
