/**
 * Recognizes common chat requests without zod, which costs 4 % of a chat's CPU time with a parent key and 8 %
 * with an agent key. `test/unit/plain-request.property.test.ts` compares this check with both schemas.
 */
import { isJsonObject } from '../lib/formats/json.ts'
import { type ChatRequest, MAX_MESSAGES, MAX_TEXT_LENGTH } from '../providers/chat-api.ts'

/**
 * Returns true only for requests that the schemas for parent keys and agent keys both accept unchanged. If it
 * returns false, the schemas must check the request.
 */
export function isPlainRequest(request: unknown): request is ChatRequest {
  if (!isJsonObject(request) || !isConversation(request.messages)) return false
  for (const name in request) {
    if (!isPlainField(name, request[name])) return false
  }
  return true
}

function isPlainField(name: string, value: unknown): boolean {
  switch (name) {
    case 'messages':
      // The caller has already checked the messages.
      return true
    case 'model':
      return typeof value === 'string' && value.length > 0 && value.length <= 300
    case 'stream':
      return typeof value === 'boolean'
    case 'temperature':
      return isNumberIn(value, 0, 2)
    case 'top_p':
      return isNumberIn(value, 0, 1)
    case 'frequency_penalty':
    case 'presence_penalty':
      return isNumberIn(value, -2, 2)
    case 'max_tokens':
    case 'max_completion_tokens':
      return Number.isSafeInteger(value) && isNumberIn(value, 1, Number.MAX_SAFE_INTEGER)
    case 'seed':
      return Number.isSafeInteger(value)
    case 'user':
      return typeof value === 'string' && value.length <= 1024
    default:
      return false
  }
}

function isNumberIn(value: unknown, least: number, most: number): boolean {
  return typeof value === 'number' && value >= least && value <= most
}

function isConversation(messages: unknown): boolean {
  if (!Array.isArray(messages) || messages.length === 0 || messages.length > MAX_MESSAGES) return false
  for (const message of messages) {
    if (!isPlainMessage(message)) return false
  }
  return true
}

/** Accepts only text messages, because other messages have fields to check. */
function isPlainMessage(message: unknown): boolean {
  if (!isJsonObject(message)) return false
  const { role, content } = message
  if (typeof content !== 'string' || content.length > MAX_TEXT_LENGTH) return false
  if (role !== 'user' && role !== 'assistant' && role !== 'system' && role !== 'developer') return false
  for (const name in message) {
    if (name !== 'role' && name !== 'content') return false
  }
  return true
}
