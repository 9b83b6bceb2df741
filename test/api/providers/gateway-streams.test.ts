/** Tests that the gateway backend forwards streams unchanged, without delay and at the reader's pace. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { iteratorDone, neverAborted, readAll } from '../../support/backend.ts'
import { startGatewayHarness, streamCall } from '../../support/gateway.ts'

const { upstream, gateway, readDirectly, findWhoEnded } = await startGatewayHarness()

describe('a stream', () => {
  test.each([
    '{{up:chunks 500}}',
    '{{up:crlf}} line ends',
    '{{up:comments}} pings',
    '{{up:python}} späces 🎈',
    '{{up:tight}} no space',
    '{{up:bad-json 2}} broken JSON',
    '{{up:half-line 2}} half a line',
    '{{up:no-finish}} no finish reason',
    '{{up:no-done}} no end marker',
    '{{up:error-frame 2}} an error frame',
    '{{up:giant 1500000}} a giant line',
    '{{up:until-close}} no framing',
    '{{up:reasoning let me think}} reasoning',
    '{{up:tool weather {"city":"Oslo","days":[1,2]}}} a tool call',
    '{{up:end-after 0}} nothing at all',
  ])('is forwarded byte for byte: %s', async (text) => {
    const request = streamCall(text, neverAborted, { n: 2, stream_options: { include_usage: true } })
    const bytes = await readAll(await gateway().stream(request))
    expect(bytes).toEqual(await readDirectly(request.body))
  })

  test('is forwarded unchanged regardless of its chunk boundaries', async () => {
    const backend = gateway()
    const text = fc.string({ unit: 'grapheme', maxLength: 60 }).filter((each) => !each.includes('{{up:'))
    await fc.assert(
      fc.asyncProperty(text, fc.nat(), async (words, seed) => {
        const { body } = streamCall(words)
        const cut = streamCall(`${words}{{up:cut ${seed}}}`)
        expect(await readAll(await backend.stream(cut))).toEqual(await readDirectly(body))
      }),
      { numRuns: 40 },
    )
  })

  test('forwards each event before the upstream sends the next one', async () => {
    const reads = await gateway().stream(streamCall('{{up:hang-after 2}} slow'))
    let text = ''
    while (!text.includes('"content":"Upstream"'))
      text += Buffer.from((await reads.next()).value ?? []).toString()
    expect(text.match(/data: /g)).toHaveLength(2)
  })

  test('is available after the response headers, before the first event', async () => {
    const reads = await gateway().stream(streamCall('{{up:hang-after 0}} head only'))
    expect(reads.next).toBeTypeOf('function')
  })

  test('aborts the upstream request when the reader abandons it', async () => {
    const reads = await gateway().stream(streamCall('{{up:hang-after 2}} left early'))
    await reads.next()
    const waiting = reads.next()
    expect(await reads.return?.()).toEqual(iteratorDone)
    expect(await waiting).toEqual(iteratorDone)
    expect(await reads.next()).toEqual(iteratorDone)
    expect(await findWhoEnded('left early')).toBe('client')
  })

  test('waits for a slow reader without losing bytes or reaching the idle timeout', async () => {
    const size = 64 * 1024 * 1024
    const reads = await gateway({ timings: { idleMs: 400 } }).stream(streamCall(`{{up:flood ${size}}}`))
    await reads.next()
    const { id } = await upstream.waitForRequest('{{up:flood')
    const stalled = await upstream.waitForStall(id, 2_500)
    expect(stalled.endedBy).toBeNull()
    expect(stalled.sentBytes).toBeLessThan(size / 2)
    let count = 0
    for (let step = await reads.next(); !step.done; step = await reads.next()) count += step.value.length
    expect(count).toBeGreaterThan(size - stalled.sentBytes)
    expect((await upstream.waitForEnd(id)).endedBy).toBe('answer')
  })

  test('does not wait for other streams', async () => {
    const backend = gateway()
    const streams = await Promise.all(
      Array.from({ length: 300 }, () => backend.stream(streamCall('{{up:hang-after 1}} many'))),
    )
    expect(await Promise.all(streams.map(async (reads) => (await reads.next()).done))).not.toContain(true)
    expect(await upstream.listRequests()).toHaveLength(300)
  })
})
