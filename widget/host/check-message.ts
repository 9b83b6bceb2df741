/** Whether what came over the port is a message of the contract. Security: 2.11. */
import { type FrameMessage, MOST_MESSAGE_LENGTH } from '../messages.ts'
import { isRecord, isText } from './values.ts'

/** Fields nobody knows, and codes of errors, are passed over: a newer frame can speak to an older page. */
export function isFrameMessage(data: unknown): data is FrameMessage {
  if (!isRecord(data)) return false
  const { type, words, count, label, text, code, message } = data
  const isFit =
    type === 'close' ||
    (type === 'ready' && isRecord(words)) ||
    (type === 'unread' && Number.isInteger(count) && isText(label)) ||
    (type === 'insert' && isText(text)) ||
    (type === 'share' && isText(text)) ||
    (type === 'error' && isText(code)) ||
    (type === 'mcp' && isRecord(message))
  return isFit && JSON.stringify(data).length <= MOST_MESSAGE_LENGTH
}
