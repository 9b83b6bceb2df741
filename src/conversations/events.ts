/** Renders chat streams whose events have ids, so that clients can resume them. */
import { createHmac } from 'node:crypto'
import type { Latin1 } from '../http/response.ts'
import { DONE } from '../http/sse.ts'
import { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { endOf } from './turn-output.ts'
import { entriesOf, type LogRun, toBuffer } from './turns/segments.ts'

const CAPABILITY_LENGTH = 22

/** The number of the last event that a client has received, and the capability of its stream. */
export interface EventId {
  readonly capability: string
  readonly number: number
}

/** Derives the capability of a turn's stream; each call for the same turn returns the same capability. */
export function deriveCapability(key: Parameters<typeof createHmac>[1], turnId: string): string {
  let block = 0
  // Returns different bytes each time, because `newId` discards some bytes and may ask for more.
  return newId('', CAPABILITY_LENGTH, (count) =>
    createHmac('sha512', key).update(`${turnId}:${block++}`).digest().subarray(0, count),
  )
}

export function parseEventId(text: string): EventId | undefined {
  const match = /^([0-9A-Za-z]{22})\.(0|[1-9]\d{0,8})$/.exec(text)
  return match === null ? undefined : { capability: match[1] as string, number: Number(match[2]) }
}

/**
 * Renders the events after number `after` as a chat stream with ids, which count from 0. Without a
 * capability, the events have no ids. Waits for the capability before it reads.
 * @throws ServiceError `event_not_kept` if the event `after` is not stored, or `stream_interrupted` after the
 * last event of an interrupted answer
 */
export async function* toChatStream(
  batches: AsyncIterable<readonly LogRun[]>,
  options: { readonly capability: string | undefined | Promise<string | undefined>; readonly after: number },
): AsyncGenerator<Latin1, void, void> {
  const { after } = options
  const capability = await options.capability
  const numbering = new EventNumbering(capability, after)
  let hasFailed = false
  let isInterrupted = false
  for await (const runs of batches) {
    const publicRuns: LogRun[] = []
    for (const run of runs) {
      if (run.kind === 'step') isInterrupted ||= isInterruption(run)
      else {
        hasFailed = run.kind === 'failure'
        publicRuns.push(run)
      }
    }
    const text = numbering.render(publicRuns)
    if (text !== '') yield text
  }
  const { number } = numbering
  const stored = number === 0 ? 'no event of the turn was stored' : `the last stored event is ${number - 1}`
  if (number <= after)
    throw new ServiceError(
      'conflict',
      `Last-Event-ID: this event was not stored; ${stored}. Read the turn again.`,
      {
        code: 'event_not_kept',
        ...(capability !== undefined && number > 0 && { lastEventId: `${capability}.${number - 1}` }),
      },
    )
  if (isInterrupted && !hasFailed) throw answerInterrupted()
  if (!hasFailed) yield DONE
}

export function answerInterrupted(): ServiceError {
  return new ServiceError('service_unavailable', 'The answer was interrupted.', {
    code: 'stream_interrupted',
  })
}

function isInterruption(run: LogRun): boolean {
  return [...entriesOf(run)].some((entry) => endOf(entry)?.interruption !== undefined)
}

/** Adds ids to events, and joins the events of a batch, because each write to a client is expensive. */
class EventNumbering {
  number = 0
  private readonly prefix: string | undefined
  private readonly after: number

  constructor(capability: string | undefined, after: number) {
    this.prefix = capability === undefined ? undefined : `id: ${capability}.`
    this.after = after
  }

  render(runs: readonly LogRun[]): Latin1 {
    const { prefix } = this
    let text = ''
    for (const { bytes, ends } of runs) {
      const source = toBuffer(bytes)
      let start = 0
      for (const end of ends) {
        if (this.number > this.after) {
          if (prefix !== undefined) text += `${prefix}${this.number}\n`
          text += source.toString('latin1', start, end)
        }
        this.number += 1
        start = end
      }
    }
    return text
  }
}
