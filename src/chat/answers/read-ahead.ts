/** Reads a stream without waiting for its reader. */

/**
 * Calls `produce` until it returns undefined or fails. Without it, a slow client would let a provider hide
 * output in the buffers of the connection.
 */
export class ReadAhead<T extends object> {
  private readonly produced: T[] = []
  private end: { readonly failure?: { readonly thrown: unknown } } | undefined
  private onChange: (() => void) | undefined

  /** `onEnd` is called after the last call of `produce`. */
  constructor(produce: () => Promise<T | undefined>, onEnd: () => void) {
    void this.run(produce).finally(onEnd)
  }

  /** Returns the next item; undefined at the end. @throws what `produce` has thrown. */
  async next(): Promise<T | undefined> {
    while (this.produced.length === 0 && this.end === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.onChange = resolve
      await promise
    }
    const item = this.produced.shift()
    if (item !== undefined) return item
    if (this.end?.failure !== undefined) throw this.end.failure.thrown
    return undefined
  }

  private async run(produce: () => Promise<T | undefined>): Promise<void> {
    try {
      for (let item = await produce(); item !== undefined; item = await produce()) {
        this.produced.push(item)
        this.onChange?.()
      }
      this.end = {}
    } catch (thrown) {
      this.end = { failure: { thrown } }
    }
    this.onChange?.()
  }
}
