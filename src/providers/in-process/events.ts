/** An answer as a stream of server-sent events, written while somebody else reads. */

type Read = IteratorResult<Uint8Array, void>

/** Takes text at one end and hands it out at the other, each read all there is. */
export class EventStream implements AsyncIterator<Uint8Array, void, void> {
  private text = ''
  private end: { readonly failure?: { readonly reason: unknown } } | undefined
  private waiting: (() => void) | undefined
  private readonly onLeave: () => void

  /** `onLeave` is called when the reader wants no more. */
  constructor(onLeave: () => void) {
    this.onLeave = onLeave
  }

  write(text: string): void {
    this.text += text
    this.wake()
  }

  finish(): void {
    this.end ??= {}
    this.wake()
  }

  /** Ends the stream with a failure, after what has been written. */
  fail(reason: unknown): void {
    this.end ??= { failure: { reason } }
    this.wake()
  }

  async next(): Promise<Read> {
    while (this.text === '' && this.end === undefined) {
      await new Promise<void>((resolve) => {
        this.waiting = resolve
      })
    }
    if (this.text !== '') {
      const value = Buffer.from(this.text)
      this.text = ''
      return { done: false, value }
    }
    const failure = this.end?.failure
    this.end = {}
    if (failure !== undefined) throw failure.reason
    return { done: true, value: undefined }
  }

  async return(): Promise<Read> {
    this.text = ''
    this.end = {}
    this.wake()
    this.onLeave()
    return { done: true, value: undefined }
  }

  private wake(): void {
    this.waiting?.()
    this.waiting = undefined
  }
}
