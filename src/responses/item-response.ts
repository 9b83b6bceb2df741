/** Renders an ended turn from its items, after its event log has expired. */
import type { ChatPiece } from '../conversations/chat-piece.ts'
import type { TurnRow } from '../conversations/conversations.ts'
import { isOutput, type StoredRow } from '../conversations/items.ts'
import type { OutputItem, ResponseObject, UnnumberedEvent } from '../conversations/response-schema.ts'
import { EventStream } from '../operations/operation.ts'
import { createAnswer, EventEncoder, type ResponseView } from './turn-response.ts'

const FAILED = 'The response failed; the details are no longer stored.'

const finishReasons: Readonly<Record<string, string>> = {
  max_output_tokens: 'length',
  content_filter: 'content_filter',
}

export function renderItems(view: ResponseView, turn: TurnRow, rows: readonly StoredRow[]): ResponseObject {
  return replay(view, turn, rows, () => {})
}

/** Streams a short form of the response, with one delta for each part. */
export function streamItems(view: ResponseView, turn: TurnRow, rows: readonly StoredRow[]): EventStream {
  const encoder = new EventEncoder(-1)
  replay(view, turn, rows, (event) => encoder.add(event))
  const bytes = encoder.take()
  return new EventStream(
    (async function* () {
      if (bytes !== undefined) yield bytes
    })(),
    () => Buffer.alloc(0),
  )
}

function replay(
  view: ResponseView,
  turn: TurnRow,
  rows: readonly StoredRow[],
  onEvent: (event: UnnumberedEvent) => void,
): ResponseObject {
  const items = rows.filter(isOutput).map(({ body }): OutputItem => JSON.parse(body))
  const ids = items.map(({ id }) => id)
  // A response without items still gets an empty message, whose id depends on the turn.
  const answer = createAnswer(view, (prefix) => ids.shift() ?? `${prefix}${turn.id}`, onEvent)
  const model = turn.model ?? view.request.model ?? ''
  for (const [index, item] of items.entries())
    for (const delta of toDeltas(item, index)) answer.take({ model, choices: [delta] })
  const finish = turn.status === 'completed' ? 'stop' : finishReasons[turn.reason ?? '']
  answer.take({ model, choices: [{ delta: {}, finish_reason: finish }], usage: toUsage(turn) })
  if (turn.status === 'failed')
    return answer.fail({ code: turn.error_code ?? 'backend_error', message: FAILED })
  const isInterrupted = turn.reason === 'interrupted' ? ('interrupted' as const) : undefined
  return answer.end(turn.ended_at ?? 0, turn.status === 'cancelled' ? 'cancelled' : isInterrupted)
}

type Choice = ChatPiece['choices'][number]

function toDeltas(item: OutputItem, index: number): Choice[] {
  if (item.type === 'function_call') {
    const { call_id: id, name, arguments: text } = item
    return [{ delta: { tool_calls: [{ index, id, function: { name, arguments: text } }] } }]
  }
  return item.content.map((part): Choice => {
    if (part.type === 'reasoning_text') return { delta: { reasoning_content: part.text } }
    if (part.type === 'refusal') return { delta: { refusal: part.refusal } }
    return { delta: { content: part.text }, logprobs: { content: part.logprobs } }
  })
}

function toUsage(turn: TurnRow): ChatPiece['usage'] {
  const { prompt_tokens: input, completion_tokens: output } = turn
  if (input + output === 0) return undefined
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: turn.cached_tokens },
    completion_tokens_details: { reasoning_tokens: turn.reasoning_tokens },
  }
}
