/** Handles a Responses API request with one chat turn; stores nothing. */
import { collect, startTurn } from '../chat/chat.ts'
import type { Dependencies } from '../chat/dependencies.ts'
import { decodeRuns } from '../chat/sse-reader.ts'
import { ServiceError } from '../lib/errors.ts'
import { type CallContext, type Caller, EventStream } from '../operations/operation.ts'
import type { ChatCompletion } from '../providers/chat-api.ts'
import { Answer } from './answer.ts'
import type { ResponseObject, UnnumberedEvent } from './answer-schema.ts'
import { toPiece } from './chat-piece.ts'
import { toChatRequest } from './request.ts'
import { ResponsesRequest } from './schema.ts'

export async function respond(
  context: CallContext<Caller, Dependencies>,
  request: ResponsesRequest,
  signal: AbortSignal,
): Promise<ResponseObject | EventStream> {
  if (context.caller.kind === 'agent') assertKnownFieldsOnly(request)
  const { deps } = context
  const pieces = await startTurn(context, toChatRequest(request), signal)
  if (request.stream) {
    const stream = new ResponseStream(deps, request)
    return new EventStream(stream.read(pieces), (failure) => stream.fail(failure))
  }
  const answer = new Answer(deps, request, () => {})
  const completion: ChatCompletion = JSON.parse(Buffer.concat(await collect(pieces)).toString())
  answer.take(toPiece(completion))
  return answer.end()
}

/**
 * Rejects unknown fields from agent keys, which are public, because such fields may gain an effect in later
 * versions.
 */
function assertKnownFieldsOnly(request: ResponsesRequest): void {
  const param = Object.keys(request).find((field) => !Object.hasOwn(ResponsesRequest.shape, field))
  if (param === undefined) return
  throw new ServiceError('invalid_value', `${param}: is not a supported field of the Responses API`, {
    param,
    code: 'unknown_parameter',
  })
}

/** Encodes a response's events; each one immediately, because its items change later. */
export class ResponseStream {
  private readonly answer: Answer
  private encoded = ''
  private count = 0

  constructor(deps: Pick<Dependencies, 'clock' | 'random'>, request: ResponsesRequest) {
    this.answer = new Answer(deps, request, (event) => this.encode(event))
  }

  async *read(runs: AsyncIterator<Uint8Array, void, void>): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunks of decodeRuns(runs)) {
      for (const chunk of chunks) this.answer.take(chunk)
      if (this.encoded !== '') yield this.flush()
    }
    this.answer.end()
    yield this.flush()
  }

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
