/** Converts chat messages to the history from which the library builds a prompt. */
import type { ChatHistoryItem, ChatModelFunctionCall, ChatModelResponse } from 'node-llama-cpp'
import { listObjects, parseJson } from '../../../src/lib/formats/json.ts'
import type { ChatMessage } from '../../../src/providers/chat-api.ts'
import { callersMistake } from '../../../src/providers/failures.ts'

type Assistant = Extract<ChatMessage, { role: 'assistant' }>

/**
 * Returns a history that ends with the turn to generate; tool results are part of the turn that made the
 * call. @throws BackendFailure status 400
 */
export function toHistory(messages: readonly ChatMessage[]): ChatHistoryItem[] {
  const history: ChatHistoryItem[] = []
  let calls = new Map<string, ChatModelFunctionCall>()
  for (const [index, message] of messages.entries()) {
    const place = `messages[${index}]`
    switch (message.role) {
      case 'system':
      case 'developer':
        history.push({ type: 'system', text: toText(message.content, place) })
        break
      case 'user':
        history.push({ type: 'user', text: toText(message.content, place) })
        break
      case 'assistant': {
        const own = toCalls(message, place)
        calls = own
        const text = message.content == null ? '' : toText(message.content, place)
        lastTurn(history).response.push(...(text === '' ? [] : [text]), ...own.values())
        break
      }
      case 'tool': {
        const call = calls.get(message.tool_call_id)
        if (call === undefined)
          throw callersMistake(
            `${place}.tool_call_id`,
            'must be the id of a tool call in the preceding assistant message',
          )
        call.result = toResult(toText(message.content, place))
        break
      }
      default:
        throw callersMistake(`${place}.role`, 'must be system, developer, user, assistant or tool')
    }
  }
  lastTurn(history)
  return history
}

function lastTurn(history: ChatHistoryItem[]): ChatModelResponse {
  const last = history.at(-1)
  if (last?.type === 'model') return last
  const turn: ChatModelResponse = { type: 'model', response: [] }
  history.push(turn)
  return turn
}

function toCalls({ tool_calls }: Assistant, place: string): Map<string, ChatModelFunctionCall> {
  return new Map(
    (tool_calls ?? []).map(({ id, function: called }, index) => {
      const where = `${place}.tool_calls[${index}].function`
      if (called === undefined)
        throw callersMistake(where, 'is required; this model supports only function calls')
      const params = parseJson(called.arguments || '{}')
      if (params === undefined) throw callersMistake(`${where}.arguments`, 'must be JSON')
      // A later tool message replaces this value.
      const result = ''
      return [id, { type: 'functionCall', name: called.name, params, result, startsNewChunk: index === 0 }]
    }),
  )
}

/** Parses a JSON result, because the template would otherwise encode it as JSON a second time. */
function toResult(text: string): unknown {
  return /^\s*[[{]/.test(text) ? (parseJson(text) ?? text) : text
}

function toText(content: ChatMessage['content'], place: string): string {
  if (typeof content === 'string') return content
  return listObjects(content)
    .map((part, index) => {
      const text = part.type === 'refusal' ? part.refusal : part.text
      if (typeof text === 'string') return text
      const rule = `must be text; this model does not accept ${String(part.type)}`
      throw callersMistake(`${place}.content[${index}]`, rule)
    })
    .join('\n')
}
