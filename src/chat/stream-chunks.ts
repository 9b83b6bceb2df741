/** Streams a turn as objects: to the typed door's callers, and to owners who try a definition out before they save it. */

import { ServiceError } from '../errors.ts'
import type { Caller } from '../keys/schema.ts'
import type { EventStream } from '../rpc/answer.ts'
import type { CallContext } from '../rpc/context.ts'
import { type ChatTrial, chat } from './chat.ts'
import { decodeRuns } from './decode.ts'
import type { Dependencies } from './dependencies.ts'
import type { ChatRequest } from './schema.ts'
import { draftAgent, type StreamChunk, Trace, type TrialOptions, withSteps } from './trial.ts'
import { nameOf } from './turn-tools.ts'

/** @throws ServiceError as `chat` does; `insufficient_permissions` for a trial with an agent key, which is public. */
export async function streamChunks(
  context: CallContext<Caller, Dependencies>,
  request: ChatRequest,
  signal: AbortSignal,
  options: TrialOptions | undefined,
): Promise<AsyncIterable<StreamChunk[]>> {
  const asked = { ...request, stream: true }
  if (options === undefined) return decodeRuns(((await chat(context, asked, signal)) as EventStream).events)
  if (context.caller.kind === 'agent')
    throw new ServiceError('insufficient_permissions', 'trial: needs a parent key', { param: 'trial' })
  const trace = new Trace()
  const answer = await chat(context, asked, signal, toTrial(options, trace))
  const runs = decodeRuns((answer as EventStream).events)
  return options.is_traced ? withSteps(runs, trace) : runs
}

function toTrial({ draft }: TrialOptions, trace: Trace): ChatTrial {
  return {
    toAgent: (saved) => (draft === undefined ? saved : draftAgent(draft, saved)),
    onAnswering({ route, count, isFallback }) {
      const { backend, model } = route
      trace.tell({
        type: 'answering',
        provider: backend.name,
        model,
        attempts: count,
        is_fallback: isFallback,
      })
    },
    onCall(call, result) {
      if (result === undefined)
        trace.tell({
          type: 'tool_call',
          call_id: call.id,
          name: nameOf(call),
          arguments: call.function?.arguments ?? '',
        })
      else trace.tell({ type: 'tool_result', call_id: call.id, content: result })
    },
  }
}
