/**
 * Handles a Responses API request with one chat turn, which is stored if the agent and the request allow it.
 */
import { collect, startTurn } from '../chat/chat.ts'
import type { Dependencies } from '../chat/dependencies.ts'
import { decodeRuns } from '../chat/sse-reader.ts'
import { toPiece } from '../conversations/chat-piece.ts'
import type { ResponseObject, UnnumberedEvent } from '../conversations/response-schema.ts'
import { type Clock, unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { type CallContext, type Caller, EventStream } from '../operations/operation.ts'
import type { ChatCompletion } from '../providers/chat-api.ts'
import { Answer, newIdentity } from './answer.ts'
import { ResponsesRequest } from './schema.ts'
import { respondStored } from './stored-responses.ts'

export async function respond(
  context: CallContext<Caller, Dependencies>,
  request: ResponsesRequest,
  signal: AbortSignal,
): Promise<ResponseObject | EventStream> {
  if (context.caller.kind === 'agent') assertKnownFieldsOnly(request)
  const { deps } = context
  const stored = await respondStored(context, request, signal)
  if (!('unstored' in stored)) return stored
  const pieces = await startTurn(context, stored.unstored, signal)
  if (request.stream) {
    const stream = new ResponseStream(deps, request)
    return new EventStream(stream.read(pieces), (failure) => stream.fail(failure))
  }
  const answer = new Answer(newIdentity(deps, request), request, () => {})
  const completion: ChatCompletion = JSON.parse(Buffer.concat(await collect(pieces)).toString())
  answer.take(toPiece(completion))
  return answer.end(unixSeconds(deps.clock))
}

/**
 * Rejects unknown fields from agent keys, which are public, because later versions may give such fields an
 * effect.
 */
function assertKnownFieldsOnly(request: ResponsesRequest): void {
  const param = Object.keys(request).find((field) => !Object.hasOwn(ResponsesRequest.shape, field))
  if (param === undefined) return
  throw new ServiceError('invalid_value', `\`${param}\` is not a supported field of the Responses API`, {
    param,
    code: 'unknown_parameter',
  })
}

/** Encodes a response's events. Encodes each event immediately, because its items change later. */
export class ResponseStream {
  private readonly answer: Answer
  private readonly clock: Clock
  private encoded = ''
  private count = 0

  constructor(deps: Pick<Dependencies, 'clock' | 'random'>, request: ResponsesRequest) {
    this.clock = deps.clock
    this.answer = new Answer(newIdentity(deps, request), request, (event) => this.encode(event))
  }

  async *read(runs: AsyncIterator<Uint8Array, void, void>): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunks of decodeRuns(runs)) {
      for (const chunk of chunks) this.answer.take(chunk)
      if (this.encoded !== '') yield this.flush()
    }
    this.answer.end(unixSeconds(this.clock))
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
