/** Bounds how long the service waits for a promise. */

export class TimeoutError extends Error {
  override readonly name = 'TimeoutError'

  constructor(ms: number) {
    super(`no response within ${ms} ms`)
  }
}

/** The value of the promise if it settles within `ms`, or else what `onTimeout` returns; by default it throws a TimeoutError. */
export async function within<T, Late = never>(
  ms: number,
  promise: Promise<T>,
  onTimeout: () => Late = () => {
    throw new TimeoutError(ms)
  },
): Promise<T | Late> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  // A process that was busy for that long reads what has arrived before it gives up.
  const timer = setTimeout(() => setImmediate(resolve), ms)
  try {
    return await Promise.race([promise, late.then(onTimeout)])
  } finally {
    clearTimeout(timer)
  }
}
