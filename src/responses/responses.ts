/** Answers a request of the Responses API with a chat: one turn, one booking, nothing kept. */

import { chat } from '../chat/chat.ts'
import type { ChatCompletion } from '../chat/schema.ts'
import { ServiceError } from '../errors.ts'
import type { Caller } from '../keys/schema.ts'
import { EventStream } from '../rpc/answer.ts'
import type { CallContext } from '../rpc/context.ts'
import { Answer } from './answer.ts'
import type { ResponseObject } from './answer-schema.ts'
import { toPiece } from './chat-piece.ts'
import { toChatRequest } from './chat-request.ts'
import type { Dependencies } from './dependencies.ts'
import { ResponsesRequest } from './schema.ts'
import { ResponseStream } from './stream.ts'

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
