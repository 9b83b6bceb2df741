/** Limits how long the service waits for a promise. */

export class TimeoutError extends Error {
  override readonly name = 'TimeoutError'

  constructor(ms: number) {
    super(`no response within ${ms} ms`)
  }
}

/**
 * Returns the promise's value if it settles within `ms`, or `onTimeout`'s result; by default, throws a
 * TimeoutError.
 */
export async function within<T, Late = never>(
  ms: number,
  promise: Promise<T>,
  onTimeout: () => Late = () => {
    throw new TimeoutError(ms)
  },
): Promise<T | Late> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  // If the process was busy, first handles input that has already arrived, and then reports the timeout.
  const timer = setTimeout(() => setImmediate(resolve), ms)
  try {
    return await Promise.race([promise, late.then(onTimeout)])
  } finally {
    clearTimeout(timer)
  }
}
