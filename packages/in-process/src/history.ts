/** Converts chat messages to the history from which the library writes a prompt. */
import type { ChatHistoryItem, ChatModelFunctionCall, ChatModelResponse } from 'node-llama-cpp'
import { listObjects, parseJson } from '../../../src/lib/formats/json.ts'
import type { ChatMessage } from '../../../src/providers/chat-api.ts'
import { callersMistake } from '../../../src/providers/failures.ts'

type Assistant = Extract<ChatMessage, { role: 'assistant' }>

/** The history ends with the turn to generate; a tool result belongs to the turn that called it. @throws BackendFailure status 400 */
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
          throw callersMistake(`${place}.tool_call_id`, 'must be of a call right before it')
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
      if (called === undefined) throw callersMistake(where, 'is missing; only functions can be called here')
      const params = parseJson(called.arguments || '{}')
      if (params === undefined) throw callersMistake(`${where}.arguments`, 'must be JSON')
      // Stays when no tool message follows.
      const result = ''
      return [id, { type: 'functionCall', name: called.name, params, result, startsNewChunk: index === 0 }]
    }),
  )
}

/** The template encodes results as JSON: a result that is JSON already must not be encoded twice. */
function toResult(text: string): unknown {
  return /^\s*[[{]/.test(text) ? (parseJson(text) ?? text) : text
}

function toText(content: ChatMessage['content'], place: string): string {
  if (typeof content === 'string') return content
  return listObjects(content)
    .map((part, index) => {
      const text = part.type === 'refusal' ? part.refusal : part.text
      if (typeof text === 'string') return text
      const rule = `must be text: this model takes no ${String(part.type)}`
      throw callersMistake(`${place}.content[${index}]`, rule)
    })
    .join('\n')
}
