/** Runs one turn, which calls the model and its tools until the model has answered. */
import type { ChatChunk } from '../../../src/providers/chat-api.ts'
import type { ConversationAction, ToolCall } from '../conversation.ts'
import { ChatFailure, type Failure, MAX_REPEATS, toChatFailure } from '../failure.ts'
import type { ChatBody, Transport } from './transport.ts'

/** Maximum number of model calls with page tools per turn; the server limits its own tool loop. */
const MAX_ROUNDS = 8
/** Maximum number of tool calls in one response of the model; the rest are ignored. */
const MAX_CALLS = 64

interface Turn {
  readonly replyId: string
  readonly transport: Transport
  readonly signal: AbortSignal
  /** Builds the request from the current conversation. */
  readonly toBody: () => Promise<ChatBody>
  readonly dispatch: (action: ConversationAction) => void
  /** Runs the calls in parallel; resolves when each has a result. Never rejects. */
  readonly callTools: (calls: readonly ToolCall[]) => Promise<void>
}

/** Runs the turn to its end and records the outcome in the conversation. Returns the failure, if any. */
export async function runTurn(turn: Turn): Promise<Failure | undefined> {
  const { replyId, signal, dispatch } = turn
  try {
    for (let round = 1; ; round++) {
      const calls = await runRoundRepeatedly(turn)
      if (calls.length === 0) break
      dispatch({ type: 'calls', replyId, calls })
      await turn.callTools(calls)
      signal.throwIfAborted()
      if (round === MAX_ROUNDS) break
      dispatch({ type: 'next-round', replyId })
    }
    dispatch({ type: 'ended', replyId, status: 'done' })
    return undefined
  } catch (thrown) {
    if (signal.aborted) {
      dispatch({ type: 'ended', replyId, status: 'stopped' })
      return undefined
    }
    const { failure } = toChatFailure(thrown)
    dispatch({ type: 'failed', replyId, failure })
    return failure
  }
}

/** Repeats a round whose budget was only reserved by other answers. */
async function runRoundRepeatedly(turn: Turn): Promise<readonly ToolCall[]> {
  for (let repeats = 0; ; repeats++) {
    try {
      return await runRound(turn)
    } catch (thrown) {
      const { repeatAfterMs } = toChatFailure(thrown).failure
      if (repeatAfterMs === undefined || repeats === MAX_REPEATS) throw thrown
      await pause(repeatAfterMs, turn.signal)
    }
  }
}

/** Ends early if the signal aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/**
 * Streams one response into the conversation and returns its tool calls. @throws ChatFailure if the stream is
 * incomplete or empty
 */
async function runRound({
  transport,
  toBody,
  signal,
  dispatch,
  replyId,
}: Turn): Promise<readonly ToolCall[]> {
  const pacer = createTextPacer((text) => dispatch({ type: 'text', replyId, text }))
  const calls: DraftCall[] = []
  let isFinished = false
  signal.throwIfAborted()
  try {
    for await (const chunks of transport.stream(await toBody(), signal)) {
      signal.throwIfAborted()
      for (const { choices } of chunks) {
        const [choice] = choices
        if (choice === undefined) continue
        if (typeof choice.delta.content === 'string') pacer.add(choice.delta.content)
        for (const piece of choice.delta.tool_calls ?? []) addPiece(calls, piece)
        if (choice.finish_reason != null) isFinished = true
      }
    }
  } finally {
    pacer.end()
  }
  signal.throwIfAborted()
  if (!isFinished) throw new ChatFailure({ code: 'interrupted' })
  if (calls.length === 0 && !pacer.hasText()) throw new ChatFailure({ code: 'empty' })
  const ids = new Set<string>()
  return calls
    .filter((call) => call !== undefined)
    .map(({ id, ...called }, index) => {
      // Makes ids unique, because each result refers to its call by id.
      const ownId = ids.has(id) ? `${id}_${index}` : id
      ids.add(ownId)
      return { id: ownId, ...called, status: 'running' }
    })
}

type CallPiece = NonNullable<ChatChunk['choices'][number]['delta']['tool_calls']>[number]

interface DraftCall {
  readonly id: string
  readonly name: string
  readonly argumentsText: string
}

/** Adds a chunk of a streamed tool call; `index` identifies the call. */
function addPiece(calls: DraftCall[], { index, id, function: piece }: CallPiece): void {
  if (!(index >= 0 && index < MAX_CALLS)) return
  const known = calls[index]
  calls[index] = {
    id: known?.id ?? id ?? `call_${index}`,
    name: (known?.name ?? '') + (piece?.name ?? ''),
    argumentsText: (known?.argumentsText ?? '') + (piece?.arguments ?? ''),
  }
}

const PACE_MS = 100

interface TextPacer {
  readonly add: (text: string) => void
  /** Emits the remaining text. No other method may be called afterwards. */
  readonly end: () => void
  readonly hasText: () => boolean
}

/** Emits the first text immediately, and later text at most every 100 ms. */
function createTextPacer(emit: (text: string) => void): TextPacer {
  let waiting = ''
  let hasText = false
  let timer: ReturnType<typeof setTimeout> | undefined

  function flush(): void {
    if (waiting === '') {
      timer = undefined
      return
    }
    const text = waiting
    waiting = ''
    timer = setTimeout(flush, PACE_MS)
    emit(text)
  }

  return {
    add(text) {
      if (text === '') return
      hasText = true
      waiting += text
      if (timer === undefined) flush()
    },
    end() {
      clearTimeout(timer)
      if (waiting !== '') emit(waiting)
      waiting = ''
    },
    hasText: () => hasText,
  }
}
