/** Whether what came over the port is a message of the contract. Security: 2.11. */
import { type FrameMessage, MOST_MESSAGE_LENGTH, widgetErrorCodes } from '../messages.ts'
import { isRecord } from './read-options.ts'

const isText = (value: unknown) => typeof value === 'string'

const hasWords = ({ words }: Record<string, unknown>) =>
  isRecord(words) && isText(words.open) && isText(words.close) && isText(words.window)

const checks: Readonly<Record<FrameMessage['type'], (message: Record<string, unknown>) => boolean>> = {
  ready: hasWords,
  words: hasWords,
  close: () => true,
  unread: ({ count, label }) => Number.isSafeInteger(count) && isText(label),
  insert: ({ text, close }) => isText(text) && typeof close === 'boolean',
  share: ({ kind, text }) => (kind === 'message' || kind === 'conversation') && isText(text),
  error: ({ code, message }) => widgetErrorCodes.some((known) => known === code) && isText(message),
  mcp: ({ message }) => isRecord(message),
}

/** Fields nobody knows are passed over, so that a newer frame can speak to an older page. */
export function isFrameMessage(data: unknown): data is FrameMessage {
  if (!isRecord(data) || !isText(data.type) || !Object.hasOwn(checks, data.type as string)) return false
  return checks[data.type as FrameMessage['type']](data) && isBounded(data)
}

function isBounded(data: unknown): boolean {
  try {
    return JSON.stringify(data).length <= MOST_MESSAGE_LENGTH
  } catch {
    return false
  }
}
