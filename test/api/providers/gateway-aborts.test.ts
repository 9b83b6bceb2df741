/** Tests that upstream requests end when a caller aborts them or the gateway backend is closed. */
import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { failureOf, iteratorDone, readAll } from '../../support/backend.ts'
import { chatCall, listen, startGatewayHarness, streamCall, ways } from '../../support/gateway.ts'

const { upstream, gateway, findWhoEnded } = await startGatewayHarness()
const reason = new Error('the caller left')

describe.each(ways)('an aborted call (%s)', (_way, call) => {
  test('is not sent if the signal was aborted before the call', async () => {
    await expect(call(gateway(), 'too late', AbortSignal.abort(reason))).rejects.toBe(reason)
    expect(await upstream.listRequests()).toEqual([])
  })

  test('stops connecting', async () => {
    // This server accepts connections but never responds to a TLS handshake.
    const { port } = await listen()
    const abort = new AbortController()
    const calling = call(gateway({ url: `https://127.0.0.1:${port}/v1` }), 'hello', abort.signal)
    abort.abort(reason)
    await expect(calling).rejects.toBe(reason)
  })

  test('is not sent if it is aborted while it waits for a connection', async () => {
    const abort = new AbortController()
    const backend = gateway()
    const calling = call(backend, 'never sent', abort.signal)
    abort.abort(reason)
    await expect(calling).rejects.toBe(reason)
    await backend.complete(chatCall('sent'))
    expect((await upstream.listRequests()).map((seen) => JSON.stringify(seen.body))).toEqual([
      expect.stringContaining('"sent"'),
    ])
  })

  test('stops waiting for the response headers', async () => {
    const abort = new AbortController()
    const calling = call(gateway(), '{{up:hang}} no head', abort.signal)
    await upstream.waitForRequest('no head')
    abort.abort(reason)
    await expect(calling).rejects.toBe(reason)
    expect(await findWhoEnded('no head')).toBe('client')
  })
})

describe('an abort during the response', () => {
  test('stops a completion', async () => {
    const abort = new AbortController()
    const calling = gateway().complete(chatCall('{{up:hang-after}} half a body', abort.signal))
    await upstream.waitForRequest('half a body')
    // The response to this request proves that the upstream has sent half of the first body.
    expect((await upstream.listRequests())[0]?.sentBytes).toBeGreaterThan(0)
    abort.abort(reason)
    await expect(calling).rejects.toBe(reason)
    expect(await findWhoEnded('half a body')).toBe('client')
  })

  test('stops a stream that is waiting for the next event', async () => {
    const abort = new AbortController()
    const reads = await gateway().stream(streamCall('{{up:hang-after 2}} half a stream', abort.signal))
    let waiting = reads.next()
    for (let text = ''; text.split('data: ').length < 3; waiting = reads.next()) {
      text += Buffer.from((await waiting).value ?? [])
    }
    abort.abort(reason)
    await expect(waiting).rejects.toBe(reason)
    expect(await reads.next()).toEqual(iteratorDone)
    expect(await findWhoEnded('half a stream')).toBe('client')
  })

  test('discards bytes that a slow reader has not read yet', async () => {
    const abort = new AbortController()
    const reads = await gateway().stream(streamCall('{{up:flood 50000000}} unread', abort.signal))
    const { id } = await upstream.waitForRequest('unread')
    await upstream.waitForStall(id, 100)
    abort.abort(reason)
    await expect(reads.next()).rejects.toBe(reason)
    expect(await reads.next()).toEqual(iteratorDone)
    expect(await findWhoEnded('unread')).toBe('client')
  })
})

describe('an abort signal that outlives its calls', () => {
  test.each([
    ['a completion', (signal: AbortSignal) => gateway().complete(chatCall('whole', signal))],
    ['a failure', (signal: AbortSignal) => failureOf(gateway().complete(chatCall('{{up:reset}}', signal)))],
    [
      'an error response',
      (signal: AbortSignal) => failureOf(gateway().stream(streamCall('{{up:status 500}}', signal))),
    ],
    ['a stream', async (signal: AbortSignal) => readAll(await gateway().stream(streamCall('whole', signal)))],
    [
      'an abandoned stream',
      async (signal: AbortSignal) =>
        (await gateway().stream(streamCall('{{up:hang-after 1}}', signal))).return?.(),
    ],
  ])('has no listeners left after %s', async (_what, call) => {
    const { signal } = new AbortController()
    await call(signal)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})

test('closing the gateway backend ends open requests and rejects new ones', async () => {
  const backend = gateway()
  const waiting = failureOf(backend.complete(chatCall('{{up:hang}} in flight')))
  const reads = await backend.stream(streamCall('{{up:hang-after 0}} in flight'))
  const next = failureOf(reads.next())
  await upstream.waitForRequest('{{up:hang}} in flight')
  await backend.close()
  expect((await waiting).kind).toBe('unreachable')
  expect((await next).kind).toBe('unreachable')
  expect((await failureOf(backend.complete(chatCall('after')))).kind).toBe('unreachable')
  const requests = await upstream.listRequests()
  expect(requests).toHaveLength(2)
  for (const { id } of requests) expect((await upstream.waitForEnd(id)).endedBy).toBe('client')
})
