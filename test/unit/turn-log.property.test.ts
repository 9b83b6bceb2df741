/**
 * Tests, with generated events, that the log of a running turn returns exactly what was appended to it, and
 * limits the events that wait to be stored.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Cursor, StoreBacklog, TurnLog } from '../../src/conversations/turns/log.ts'
import {
  decodeSegment,
  entriesOf,
  type LogRun,
  toChatRun,
  toRun,
} from '../../src/conversations/turns/segments.ts'
import { ToolDataFilter } from '../../src/conversations/turns/tool-data.ts'

const MIB = 1024 * 1024
const events = { onAppend() {} }

const run: fc.Arbitrary<LogRun> = fc.oneof(
  fc
    .array(fc.string({ maxLength: 20 }), { minLength: 1, maxLength: 5 })
    .map((texts) =>
      toChatRun(Buffer.from(texts.map((text) => `data: ${JSON.stringify(text)}\n\n`).join(''))),
    ),
  fc.string({ maxLength: 10 }).map((text) => toRun({ kind: 'step', bytes: Buffer.from(text) })),
  fc.constant(toRun({ kind: 'chat', bytes: Buffer.alloc(40_000, 'x') })),
)
const action = fc.oneof(
  run.map((appended) => ({ type: 'append', appended }) as const),
  fc.constant({ type: 'seal' } as const),
  fc.constant({ type: 'store' } as const),
  fc.constant({ type: 'read' } as const),
)

function list(runs: readonly LogRun[]): string[] {
  return runs.flatMap((each) => [...entriesOf(each)].map(({ kind, bytes }) => `${kind} ${bytes}`))
}

describe('the log of a running turn', () => {
  test('returns the entries from every position, from memory or from the store', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 25 }), (actions) => {
        const log = new TurnLog('turn_a', new StoreBacklog(), events)
        const cursor: Cursor = { next: 0 }
        log.open(cursor)
        const all: string[] = []
        const stored: string[] = []
        for (const each of actions) {
          if (each.type === 'append') {
            log.append(each.appended)
            all.push(...list([each.appended]))
          } else if (each.type === 'read') cursor.next = log.length
          else {
            const segments = log.takeWaiting()
            if (each.type === 'seal') continue
            stored.push(...segments.flatMap(({ body }) => list(decodeSegment(body))))
            log.markStored(segments)
          }
          expect(stored).toEqual(all.slice(0, stored.length))
          for (let from = 0; from <= all.length; from++) {
            const kept = log.readKept(from)
            if (kept === undefined) expect(from).toBeLessThan(stored.length)
            else expect(list(kept)).toEqual(all.slice(from))
          }
        }
      }),
    )
  })

  test('gives readers the tool data that it does not store, even after the events are stored', () => {
    const log = new TurnLog('turn_a', new StoreBacklog(), events, new ToolDataFilter())
    const call = { type: 'tool_call', call_id: 'call_a', name: 'search', arguments: '{"text":"secret"}' }
    const runs = [
      toRun({ kind: 'step', bytes: Buffer.from(JSON.stringify(call)) }),
      toRun({ kind: 'chat', bytes: Buffer.alloc(100_000, 'x') }),
      toRun({ kind: 'chat', bytes: Buffer.from('data: {}\n\n') }),
    ]
    for (const each of runs) log.append(each)
    const segments = log.takeWaiting()
    log.markStored(segments)
    log.append(toRun({ kind: 'chat', bytes: Buffer.from('data: last\n\n') }))
    expect(list(log.readKept(0) ?? []).slice(0, 3)).toEqual(list(runs))
    const stored = list(segments.flatMap(({ body }) => decodeSegment(body)))
    expect(stored[0]).toBe(`step ${JSON.stringify({ ...call, arguments: '{}' })}`)
    expect(stored.slice(1)).toEqual(list(runs.slice(1)))
  })

  test('is full while more than 1 MiB waits to be stored, unless the turn is stopped', () => {
    const large = toRun({ kind: 'chat', bytes: Buffer.alloc(MIB + 1) })
    const log = new TurnLog('turn_a', new StoreBacklog(), events)
    log.append(large)
    expect(log.isFull).toBe(true)
    log.markStored(log.takeWaiting())
    expect(log.isFull).toBe(false)
    log.append(large)
    expect(log.isFull).toBe(true)
    log.stopWaiting()
    expect(log.isFull).toBe(false)
  })

  test('is full while all turns together have more than 32 MiB waiting to be stored', async () => {
    const backlog = new StoreBacklog()
    const logs = Array.from({ length: 33 }, (_, index) => new TurnLog(`turn_${index}`, backlog, events))
    for (const log of logs) log.append(toRun({ kind: 'chat', bytes: Buffer.alloc(MIB) }))
    expect(logs.every((log) => log.isFull)).toBe(true)
    const waiting = logs.map((log) => log.hasRoom())
    const [first] = logs
    first?.markStored(first.takeWaiting())
    await Promise.all(waiting)
    expect(logs.some((log) => log.isFull)).toBe(false)
  })
})
