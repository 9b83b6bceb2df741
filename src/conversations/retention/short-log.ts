/** Replaces the deleted events of an ended turn by a short log with the same items. */
import type { ItemRow } from '../item-store.ts'
import { isInput } from '../items.ts'
import type { TurnRow } from '../store.ts'
import { toEndEntry } from '../turn-output.ts'
import type { LogEntry } from '../turns/segments.ts'

interface Body {
  readonly call_id?: string
  readonly name?: string
  readonly arguments?: string
  readonly content?: readonly { readonly type: string; readonly text?: string; readonly refusal?: string }[]
}

/** `items` are those of the turn, in order. A turn that failed before its first event has no log. */
export function toShortLog(turn: TurnRow, items: readonly ItemRow[]): LogEntry[] {
  if (turn.last_seq < 0) return []
  const end = toEndEntry({ at: turn.ended_at ?? turn.created_at, ...toOutcome(turn) })
  const produced = items.filter((item) => !isInput(item))
  if (produced.length === 0) return [end]
  const completion = {
    id: turn.id,
    object: 'chat.completion',
    created: turn.created_at,
    model: turn.model ?? '',
    choices: [{ index: 0, message: toMessage(produced), finish_reason: toFinish(turn, produced) }],
    usage: {
      prompt_tokens: turn.prompt_tokens,
      completion_tokens: turn.completion_tokens,
      total_tokens: turn.prompt_tokens + turn.completion_tokens,
    },
  }
  return [{ kind: 'completion', bytes: Buffer.from(JSON.stringify(completion)) }, end]
}

function toOutcome({ status, reason, error_code: code }: TurnRow) {
  if (status === 'cancelled') return { interruption: 'cancelled' as const }
  if (reason === 'interrupted') return { interruption: 'interrupted' as const }
  if (status === 'failed') return { failure: { code: code ?? 'server_error', message: 'The turn failed.' } }
  return {}
}

function toMessage(items: readonly ItemRow[]) {
  const calls = listOwnCalls(items)
  return {
    role: 'assistant',
    content: textOf(items, 'output_text') || null,
    ...withText('reasoning_content', textOf(items, 'reasoning_text')),
    ...withText('refusal', textOf(items, 'refusal')),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
}

/** The calls that the client answers; calls of server tools have a result in the same turn. */
function listOwnCalls(items: readonly ItemRow[]) {
  const bodies = items.map((item) => ({ type: item.type, body: JSON.parse(item.body) as Body }))
  const answered = new Set(
    bodies.filter(({ type }) => type === 'function_call_output').map(({ body }) => body.call_id),
  )
  return bodies
    .filter(({ type, body }) => type === 'function_call' && !answered.has(body.call_id))
    .map(({ body }) => ({
      id: body.call_id,
      type: 'function',
      function: { name: body.name, arguments: body.arguments },
    }))
}

function textOf(items: readonly ItemRow[], type: string): string {
  return items
    .flatMap(({ body }) => (JSON.parse(body) as Body).content ?? [])
    .filter((part) => part.type === type)
    .map(({ text, refusal }) => text ?? refusal ?? '')
    .join('')
}

function withText(name: string, text: string): Record<string, string> {
  return text === '' ? {} : { [name]: text }
}

function toFinish({ status, reason }: TurnRow, items: readonly ItemRow[]): string | null {
  if (reason === 'max_output_tokens') return 'length'
  if (reason === 'content_filter') return 'content_filter'
  if (status !== 'completed') return null
  return listOwnCalls(items).length > 0 ? 'tool_calls' : 'stop'
}
