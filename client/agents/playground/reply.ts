/** Builds the state of a playground answer from its stream. */
import type { Inputs, Outputs } from '../../api.ts'

export type Message = Inputs['chat']['stream']['messages'][number]
type Runs = Outputs['chat']['stream'] extends AsyncIterable<(infer Chunk)[]> ? Chunk : never
type Chunk = Runs

/** The draft or the saved version. */
export type Side = 'draft' | 'published'

export interface Call {
  readonly id: string
  readonly name: string
  /** As the model wrote them; may not be valid JSON. */
  readonly argumentsText: string
  /** The result sent to the model; absent until it is known. */
  readonly result?: string
}

export interface Answering {
  readonly provider: string
  readonly model: string
  readonly attempts: number
  readonly isFallback: boolean
}

export interface Reply {
  readonly status: 'running' | 'waiting' | 'done' | 'stopped' | 'failed'
  readonly text: string
  readonly calls: readonly Call[]
  readonly answering?: Answering
  readonly promptTokens: number
  readonly completionTokens: number
  readonly firstTokenMs?: number
  readonly totalMs: number
  readonly problem?: string
  /** The messages that this turn adds after the question, ending with the final text. */
  readonly thread: readonly Message[]
  /** Text and tool calls of the current model call. */
  readonly round: { readonly text: string; readonly calls: readonly Call[] }
}

export const emptyReply: Reply = {
  status: 'running',
  text: '',
  calls: [],
  promptTokens: 0,
  completionTokens: 0,
  totalMs: 0,
  thread: [],
  round: { text: '', calls: [] },
}

/** Returns the reply with another chunk, which arrived `elapsedMs` after the question. */
export function addChunk(reply: Reply, chunk: Chunk, elapsedMs: number): Reply {
  const stepped = chunk.step === undefined ? reply : addStep(reply, chunk.step)
  const { usage } = chunk
  const counted =
    usage == null
      ? stepped
      : {
          ...stepped,
          promptTokens: stepped.promptTokens + usage.prompt_tokens,
          completionTokens: stepped.completionTokens + usage.completion_tokens,
        }
  return chunk.choices.reduce((now, { delta }) => addDelta(now, delta, elapsedMs), {
    ...counted,
    totalMs: elapsedMs,
  })
}

type Step = NonNullable<Chunk['step']>

function addStep(reply: Reply, step: Step): Reply {
  switch (step.type) {
    case 'answering': {
      const { provider, model, attempts, is_fallback: isFallback } = step
      return { ...reply, answering: { provider, model, attempts, isFallback } }
    }
    case 'tool_call': {
      const call = { id: step.call_id, name: step.name, argumentsText: step.arguments }
      return { ...reply, calls: [...reply.calls, call] }
    }
    case 'tool_result':
      return { ...reply, calls: setResult(reply.calls, step.call_id, step.content) }
  }
}

type Delta = Chunk['choices'][number]['delta']

function addDelta(reply: Reply, delta: Delta, elapsedMs: number): Reply {
  const text = delta.content ?? ''
  const calls = (delta.tool_calls ?? []).reduce(addCallPiece, reply.round.calls)
  if (text === '' && calls === reply.round.calls) return reply
  return {
    ...reply,
    text: reply.text + text,
    firstTokenMs: reply.firstTokenMs ?? elapsedMs,
    round: { text: reply.round.text + text, calls },
  }
}

type CallPiece = NonNullable<Delta['tool_calls']>[number]

/** A call's first chunk has its id and name; later chunks continue its arguments. */
function addCallPiece(calls: readonly Call[], piece: CallPiece): readonly Call[] {
  const { index = 0, id, function: called } = piece
  const known = calls[index]
  const argumentsText = called?.arguments ?? ''
  if (known === undefined)
    return [...calls, { id: id ?? `call-${index}`, name: called?.name ?? '', argumentsText }]
  return calls.with(index, { ...known, argumentsText: known.argumentsText + argumentsText })
}

/**
 * Returns the finished reply after its stream has ended, or a reply that waits for results of client-side
 * tools.
 */
export function endReply(reply: Reply): Reply {
  const { text, calls } = reply.round
  if (calls.length > 0) return { ...reply, status: 'waiting', calls: [...reply.calls, ...calls] }
  const answer: Message[] = text === '' ? [] : [{ role: 'assistant', content: text }]
  return { ...reply, status: 'done', thread: [...reply.thread, ...answer], round: emptyReply.round }
}

/** Adds the tool results that the reply waits for, so that the model can be called again. */
export function answerCalls(reply: Reply, results: Readonly<Record<string, string>>): Reply {
  const { text, calls } = reply.round
  const asked: Message = {
    role: 'assistant',
    content: text === '' ? null : text,
    tool_calls: calls.map(({ id, name, argumentsText }) => ({
      id,
      type: 'function',
      function: { name, arguments: argumentsText },
    })),
  }
  const toolMessages = calls.map(
    ({ id }): Message => ({ role: 'tool', tool_call_id: id, content: results[id] ?? '' }),
  )
  return {
    ...reply,
    status: 'running',
    text: reply.text === '' ? '' : `${reply.text}\n\n`,
    calls: calls.reduce((now, { id }) => setResult(now, id, results[id] ?? ''), reply.calls),
    thread: [...reply.thread, asked, ...toolMessages],
    round: emptyReply.round,
  }
}

function setResult(calls: readonly Call[], id: string, result: string): readonly Call[] {
  return calls.map((call) => (call.id === id ? { ...call, result } : call))
}
