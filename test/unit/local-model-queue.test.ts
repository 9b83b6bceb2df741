/** The line in front of a model of the process, without a model. */
import { expect, test } from 'vitest'
import { MOST_REQUESTS, Queue } from '../../packages/in-process/src/queue.ts'
import { BackendFailure } from '../../src/providers/provider.ts'
import { failureOf, never } from '../support/backend.ts'
import { createFakeClock } from '../support/fake-clock.ts'

/** Work that ends when it is told to, and a list of what has begun. */
function createDesk(placeCount = 2) {
  const clock = createFakeClock()
  const queue = new Queue(placeCount, clock)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  return {
    queue,
    clock,
    begun,
    run: (name: string, signal: AbortSignal = never) =>
      queue.run(signal, async (place) => {
        begun.push(`${name}${place}`)
        await new Promise<void>((resolve) => ends.set(name, resolve))
        return name
      }),
    end: (name: string) => ends.get(name)?.(),
  }
}

test('places are given in the order they were asked for', async () => {
  const { run, end, begun } = createDesk()
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => run(name))
  await Promise.resolve()
  expect(begun).toEqual(['a1', 'b0'])
  end('b')
  expect(await b).toBe('b')
  await Promise.resolve()
  expect(begun).toEqual(['a1', 'b0', 'c0'])
  end('a')
  await a
  await Promise.resolve()
  expect(begun.at(-1)).toBe('d1')
  end('c')
  end('d')
  expect(await Promise.all([c, d])).toEqual(['c', 'd'])
})

test('beyond eight nobody waits, and is told how long one takes', async () => {
  const { run, end, clock } = createDesk()
  const first = run('first')
  await Promise.resolve()
  clock.advance(45)
  end('first')
  await first
  for (let each = 0; each < MOST_REQUESTS; each++) void run(`${each}`)
  const failure = await failureOf(run('ninth'))
  // A quarter of the newest and three of what was taken for granted, by two places.
  expect(failure).toMatchObject({ kind: 'status', status: 429, isFinal: true, retryAfterSeconds: 8 })
  expect(failure).toBeInstanceOf(BackendFailure)
})

test('who leaves the line gives way, and work that fails its place', async () => {
  const { run, end, queue, begun } = createDesk(1)
  const failing = queue.run(never, () => Promise.reject(new Error('broken')))
  const leaving = new AbortController()
  const left = run('left', leaving.signal)
  const next = run('next')
  leaving.abort(new Error('gone'))
  await expect(failing).rejects.toThrow('broken')
  await expect(left).rejects.toThrow('gone')
  end('next')
  expect(await next).toBe('next')
  expect(begun).toEqual(['next0'])
})

test('who leaves at work is let go at once; the place comes free when the work has stopped', async () => {
  const { run, end, queue, begun } = createDesk(1)
  const leaving = new AbortController()
  const left = run('left', leaving.signal)
  const next = run('next')
  await Promise.resolve()
  leaving.abort(new Error('gone'))
  await expect(left).rejects.toThrow('gone')
  expect(begun).toEqual(['left0'])
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

test('who has left already does not begin', async () => {
  const { run, begun } = createDesk()
  await expect(run('late', AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone')
  const leaving = new AbortController()
  const meanwhile = run('meanwhile', leaving.signal)
  leaving.abort(new Error('gone'))
  await expect(meanwhile).rejects.toThrow('gone')
  expect(begun).toEqual([])
})
