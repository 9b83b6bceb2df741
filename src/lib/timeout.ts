/** Bounds how long an answer may take. */

/** Nobody has answered in time. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'

  constructor(ms: number) {
    super(`there was no answer within ${ms} ms`)
  }
}

/**
 * The answer, when it comes within so many milliseconds. A process that was busy itself for so long looks once more for what has
 * arrived meanwhile.
 * @throws NoAnswer
 */
export async function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => setImmediate(() => reject(new NoAnswer(ms))), ms)
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}
