/** Makes the events of a response of a chat's stream. Protocol: Responses API (streaming events). */
import { decodeRuns } from '../chat/decode.ts'
import type { ServiceError } from '../errors.ts'
import { Answer } from './answer.ts'
import type { UnnumberedEvent } from './answer-schema.ts'
import type { Dependencies } from './dependencies.ts'
import type { ResponsesRequest } from './schema.ts'

/** The events of one response as bytes; they are encoded at once, and hold what was said until then. */
export class ResponseStream {
  private readonly answer: Answer
  private encoded = ''
  private count = 0

  constructor(deps: Pick<Dependencies, 'clock' | 'random'>, request: ResponsesRequest) {
    this.answer = new Answer(deps, request, (event) => this.encode(event))
  }

  /** The events that follow from each run of a chat's stream. */
  async *read(runs: AsyncIterator<Uint8Array, void, void>): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunks of decodeRuns(runs)) {
      for (const chunk of chunks) this.answer.take(chunk)
      if (this.encoded !== '') yield this.flush()
    }
    this.answer.end()
    yield this.flush()
  }

  /** The events that tell of a failure; nothing follows them. */
  fail(failure: ServiceError): Uint8Array {
    this.answer.fail(failure)
    return this.flush()
  }

  private encode({ type, ...event }: UnnumberedEvent): void {
    const data = JSON.stringify({ type, sequence_number: this.count++, ...event })
    this.encoded += `event: ${type}\ndata: ${data}\n\n`
  }

  private flush(): Uint8Array {
    const bytes = Buffer.from(this.encoded)
    this.encoded = ''
    return bytes
  }
}
