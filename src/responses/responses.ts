/** Answers a request of the Responses API with a chat: one turn, one booking, nothing kept. */
import { chat } from '../chat/chat.ts'
import { decodeRuns } from '../chat/sse-reader.ts'
import { ServiceError } from '../lib/errors.ts'
import { type CallContext, type Caller, EventStream } from '../operations/operation.ts'
import type { ChatCompletion } from '../providers/chat-api.ts'
import { Answer } from './answer.ts'
import type { ResponseObject, UnnumberedEvent } from './answer-schema.ts'
import { toPiece } from './chat-piece.ts'
import type { Dependencies } from './dependencies.ts'
import { toChatRequest } from './request.ts'
import { ResponsesRequest } from './schema.ts'

/**
 * The response, or the stream of its events. Decision: 5 (an agent key may call it).
 * @throws ServiceError `invalid_value`, and as `chat` does.
 */
export async function respond(
  context: CallContext<Caller, Dependencies>,
  request: ResponsesRequest,
  signal: AbortSignal,
): Promise<ResponseObject | EventStream> {
  if (context.caller.kind === 'agent') assertKnownFieldsOnly(request)
  const { deps } = context
  const asked = toChatRequest(request)
  if (request.stream) {
    const stream = new ResponseStream(deps, request)
    const { events } = (await chat(context, asked, signal)) as EventStream
    return new EventStream(stream.read(events), (failure) => stream.fail(failure))
  }
  const answer = new Answer(deps, request, () => {})
  const completion: ChatCompletion = JSON.parse(String(await chat(context, asked, signal)))
  answer.take(toPiece(completion))
  return answer.end()
}

/** A public key must not find fields that do nothing today and something tomorrow. Decision: 7. */
function assertKnownFieldsOnly(request: ResponsesRequest): void {
  const param = Object.keys(request).find((field) => !Object.hasOwn(ResponsesRequest.shape, field))
  if (param === undefined) return
  throw new ServiceError('invalid_value', `${param}: is not a field of the Responses API here`, {
    param,
    code: 'unknown_parameter',
  })
}

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
