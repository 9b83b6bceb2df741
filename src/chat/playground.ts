/** Lets an owner try an agent out: a definition nobody has saved answers, and every step on the way is told. */
import { z } from 'zod'
import type { Agent } from '../agents/cache.ts'
import { parseDefinition } from '../agents/definition.ts'
import { DefinitionBody } from '../agents/schema.ts'
import { ServiceError } from '../lib/errors.ts'
import { openPolicy } from '../models/policy.ts'
import type { CallContext, Caller, EventStream } from '../operations/operation.ts'
import { ChatChunk, ChatRequest } from '../providers/chat-api.ts'
import { type ChatTrial, chat } from './chat.ts'
import type { Dependencies } from './dependencies.ts'
import type { TurnAgent } from './persona.ts'
import { decodeRuns } from './sse-reader.ts'
import { nameOf } from './tool-loop.ts'

/** Stands for the id of an agent that was never saved. */
const UNSAVED_ID = 'draft'

/** How a trial differs from any other stream. With an agent key none of it is taken. */
export const TrialOptions = z.strictObject({
  draft: DefinitionBody.optional().meta({ description: 'Answers instead of the saved definition.' }),
  is_traced: z.boolean().default(false).meta({ description: 'Steps come as chunks without choices.' }),
})
export type TrialOptions = z.infer<typeof TrialOptions>

export const StreamRequest = ChatRequest.extend({ trial: TrialOptions.optional() })

/** A step of a turn that its caller would not see otherwise. */
export const TurnStep = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('answering'),
    provider: z.string(),
    model: z.string(),
    attempts: z.int(),
    is_fallback: z.boolean(),
  }),
  z.strictObject({
    type: z.literal('tool_call'),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string(),
  }),
  z.strictObject({ type: z.literal('tool_result'), call_id: z.string(), content: z.string() }),
])
export type TurnStep = z.infer<typeof TurnStep>

export const StreamChunk = ChatChunk.extend({ step: TurnStep.optional() })
export type StreamChunk = z.infer<typeof StreamChunk>

/**
 * The agent as it would be with that definition; without a saved one it may use every model.
 * @throws ServiceError `invalid_value`, `too_large`
 */
export function draftAgent(
  { yaml, format }: z.output<typeof DefinitionBody>,
  saved: Agent | undefined,
): TurnAgent {
  return {
    row: { id: saved?.row.id ?? UNSAVED_ID },
    definition: parseDefinition(yaml, format),
    policy: saved?.policy ?? openPolicy,
  }
}

/** The steps of one turn, in the order in which they happen. */
export class Trace {
  private steps: TurnStep[] = []
  private wake: () => void = () => {}

  tell(step: TurnStep): void {
    this.steps.push(step)
    this.wake()
  }

  /** What was told since the last time. */
  take(): TurnStep[] {
    const taken = this.steps
    this.steps = []
    return taken
  }

  /** Resolves as soon as there is something to take. */
  news(): Promise<undefined> {
    if (this.steps.length > 0) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      this.wake = () => resolve(undefined)
    })
  }
}

/** The runs of chunks with the steps between them, each as soon as it happens. Leaving the iteration ends the stream. */
export async function* withSteps(
  runs: AsyncGenerator<ChatChunk[], void, void>,
  trace: Trace,
): AsyncGenerator<StreamChunk[], void, void> {
  let next = runs.next()
  try {
    for (;;) {
      const read = await Promise.race([trace.news(), next])
      const steps = trace.take()
      if (steps.length > 0) yield steps.map(toChunk)
      if (read === undefined) continue
      if (read.done) return
      yield read.value
      next = runs.next()
    }
  } finally {
    // Whoever has left does not hear of a failure.
    next.catch(() => {})
    await runs.return()
  }
}

function toChunk(step: TurnStep): StreamChunk {
  return { id: '', object: 'chat.completion.chunk', created: 0, model: '', choices: [], step }
}

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
