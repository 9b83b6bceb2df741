/** What an operation may return besides a plain object: an answer that is bytes already, a stream of events, a download, a page. */
import type { Readable } from 'node:stream'
import type { ServiceError } from '../errors.ts'
import type { ByteRange } from '../storage/blobs.ts'

/** A JSON answer that is encoded already, in one piece or in several that were cut anywhere. */
export class JsonBytes {
  readonly pieces: readonly Uint8Array[]

  constructor(bytes: Uint8Array | readonly Uint8Array[]) {
    this.pieces = bytes instanceof Uint8Array ? [bytes] : bytes
  }

  toString(): string {
    return Buffer.concat(this.pieces).toString()
  }
}

/** Server-sent events, complete ones in each item; the door adds the head, the heartbeat and the end. */
export class EventStream {
  readonly events: AsyncIterator<Uint8Array, void, void>
  /**
   * The events a failure is told in, once others have been sent. A stream that has such events tells its end by one too; without them
   * the door ends it as the chat API does.
   */
  readonly tellFailure: ((failure: ServiceError) => Uint8Array) | undefined

  constructor(
    events: AsyncIterator<Uint8Array, void, void>,
    tellFailure?: (failure: ServiceError) => Uint8Array,
  ) {
    this.events = events
    this.tellFailure = tellFailure
  }
}

/** Bytes that somebody uploaded, sent as they are; the door adds ranges, conditions and the headers that keep them harmless. */
export class Download {
  readonly content: DownloadContent

  constructor(content: DownloadContent) {
    this.content = content
  }
}

/** A page for people; the door adds the headers that keep it, and the token in its address, to itself. */
export class Page {
  readonly html: string

  constructor(html: string) {
    this.html = html
  }
}

export interface DownloadContent {
  readonly sizeBytes: number
  /** Changes whenever the bytes do; a strong tag, with its quotes. */
  readonly entityTag: string
  /** What the bytes were found to be, not what somebody said they are. */
  readonly mediaType: string
  /** What to save them as, unchecked. */
  readonly filename: string
  /** Never shown in the browser's own window, however harmless they look. */
  readonly isAttachment?: boolean
  /** The bytes in the range; all of them without one. */
  open(range?: ByteRange): Promise<Readable>
}
