/** What an operation may return besides a plain object: an answer that is bytes already, and a stream of events. */

/** A JSON answer that is encoded already. */
export class JsonBytes {
  readonly bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }
}

/** Server-sent events, complete ones in each item; the door adds the head, the heartbeat and the end. */
export class EventStream {
  readonly events: AsyncIterator<Uint8Array, void, void>

  constructor(events: AsyncIterator<Uint8Array, void, void>) {
    this.events = events
  }
}
