/** Tests how requests to an in-process model wait for free slots. */
import { expect, test } from 'vitest'
import { MOST_REQUESTS, Queue } from '../../packages/in-process/src/queue.ts'
import { BackendFailure } from '../../src/providers/provider.ts'
import { failureOf, neverAborted } from '../support/backend.ts'
import { createFakeClock } from '../support/fake-clock.ts'

/** Creates a queue whose work ends when the test calls `end`, and a list of the work that has started. */
function createHarness(slotCount = 2) {
  const clock = createFakeClock()
  const queue = new Queue(slotCount, clock)
  const started: string[] = []
  const ends = new Map<string, () => void>()
  return {
    queue,
    clock,
    started,
    run: (name: string, signal: AbortSignal = neverAborted) =>
      queue.run(signal, async (place) => {
        started.push(`${name}${place}`)
        await new Promise<void>((resolve) => ends.set(name, resolve))
        return name
      }),
    end: (name: string) => ends.get(name)?.(),
  }
}

test('requests receive free slots in the order in which they arrive', async () => {
  const { run, end, started } = createHarness()
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => run(name))
  await Promise.resolve()
  expect(started).toEqual(['a1', 'b0'])
  end('b')
  expect(await b).toBe('b')
  await Promise.resolve()
  expect(started).toEqual(['a1', 'b0', 'c0'])
  end('a')
  await a
  await Promise.resolve()
  expect(started.at(-1)).toBe('d1')
  end('c')
  end('d')
  expect(await Promise.all([c, d])).toEqual(['c', 'd'])
})

test('a ninth concurrent request is rejected with 429 and an estimate of the wait', async () => {
  const { run, end, clock } = createHarness()
  const first = run('first')
  await Promise.resolve()
  clock.advance(45)
  end('first')
  await first
  for (let each = 0; each < MOST_REQUESTS; each++) void run(`${each}`)
  const failure = await failureOf(run('ninth'))
  // A quarter of the last duration plus three quarters of the assumed duration, divided by two slots.
  expect(failure).toMatchObject({ kind: 'status', status: 429, isFinal: true, retryAfterSeconds: 8 })
  expect(failure).toBeInstanceOf(BackendFailure)
})

test('failed work releases its slot to the next caller that is still in the queue', async () => {
  const { run, end, queue, started } = createHarness(1)
  const failing = queue.run(neverAborted, () => Promise.reject(new Error('broken')))
  const leaving = new AbortController()
  const left = run('left', leaving.signal)
  const next = run('next')
  leaving.abort(new Error('gone'))
  await expect(failing).rejects.toThrow('broken')
  await expect(left).rejects.toThrow('gone')
  end('next')
  expect(await next).toBe('next')
  expect(started).toEqual(['next0'])
})

test('a slot stays in use until its work ends, even if the caller has aborted the request', async () => {
  const { run, end, queue, started } = createHarness(1)
  const leaving = new AbortController()
  const left = run('left', leaving.signal)
  const next = run('next')
  await Promise.resolve()
  leaving.abort(new Error('gone'))
  await expect(left).rejects.toThrow('gone')
  expect(started).toEqual(['left0'])
  let isSettled = false
  const settled = queue.settled().then(() => {
    isSettled = true
  })
  await Promise.resolve()
  expect(isSettled).toBe(false)
  end('left')
  await settled
  end('next')
  expect(await next).toBe('next')
})

test('a request that is aborted while it waits never starts', async () => {
  const { run, started } = createHarness()
  await expect(run('late', AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone')
  const leaving = new AbortController()
  const queued = run('queued', leaving.signal)
  leaving.abort(new Error('gone'))
  await expect(queued).rejects.toThrow('gone')
  expect(started).toEqual([])
})
