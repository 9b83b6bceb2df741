/** Converts a conversation to the messages that the model receives. */

import { isWithinLimit } from '../../values.ts'
import { toParts, withoutData } from '../attachments/attachments.ts'
import { type Entry, type Reply, textOf, type UserMessage } from '../conversation.ts'
import type { AttachmentPart, CalledTool, ChatMessage } from './transport.ts'

/** Maximum number of messages to send; well below the server's limit. */
const MAX_MESSAGES = 400
/**
 * Maximum length of the messages as JSON, in UTF-16 code units; limits each turn's cost in a long
 * conversation.
 */
const MAX_LENGTH = 512 * 1024
/** Maximum length of the attachments of earlier messages, in UTF-16 code units. */
const MAX_EARLIER_DATA = 1_000_000
const NOT_SENT = '[A file that the user attached earlier is not sent again]'

/**
 * Returns the newest entries within the limits, starting with a user message. Inserts `pageMessage` before
 * the newest user message.
 */
export function toMessages(entries: readonly Entry[], pageMessage: string | undefined): ChatMessage[] {
  const kept = newestOf(limitAttachments(withoutFailed(entries)).map(renderEntry))
  const messages = kept.flat()
  if (pageMessage === undefined) return messages
  const newest = messages.findLastIndex(({ role }) => role === 'user')
  return messages.toSpliced(Math.max(0, newest), 0, { role: 'user', content: pageMessage })
}

/**
 * Removes messages whose reply was refused, too long or empty, because they could make every later turn fail
 * too.
 */
function withoutFailed(entries: readonly Entry[]): readonly Entry[] {
  const isFailed = (entry: Entry | undefined) =>
    entry?.kind === 'reply' && entry.status === 'failed' && (isRefused(entry) || textOf(entry) === '')
  return entries.filter((entry, index) => !isFailed(entry) && !isFailed(entries[index + 1]))
}

function isRefused({ failure }: Reply): boolean {
  return failure?.code === 'refused' || failure?.code === 'too_long'
}

function newestOf(rendered: readonly ChatMessage[][]): readonly ChatMessage[][] {
  let start = rendered.length
  let count = 0
  let length = 0
  const newestQuestion = rendered.findLastIndex(([first]) => first?.role === 'user')
  for (const [index, messages] of [...rendered.entries()].reverse()) {
    count += messages.length
    length += JSON.stringify(messages, withoutFiles).length
    if ((count > MAX_MESSAGES || length > MAX_LENGTH) && index < newestQuestion) break
    if (messages[0]?.role === 'user') start = index
  }
  return rendered.slice(start)
}

/** Excludes attachments from a message's length, because one image would displace the whole conversation. */
function withoutFiles(key: string, value: unknown): unknown {
  return key === 'url' || key === 'file_data' ? '' : value
}

/** Keeps the attachments' data in the newest message, and in earlier messages within the limit. */
function limitAttachments(entries: readonly Entry[]): readonly Entry[] {
  const newest = entries.findLastIndex(({ kind }) => kind === 'user')
  let length = 0
  return entries
    .map((entry, index) => ({ entry, index }))
    .toReversed()
    .map(({ entry, index }) => {
      if (entry.kind !== 'user' || entry.attachments === undefined || index === newest) return entry
      length += entry.attachments.reduce((sum, { data = '' }) => sum + data.length, 0)
      return length > MAX_EARLIER_DATA ? { ...entry, attachments: withoutData(entry.attachments) } : entry
    })
    .toReversed()
}

function renderEntry(entry: Entry): ChatMessage[] {
  if (entry.kind === 'user') return [{ role: 'user', content: renderContent(entry) }]
  return entry.kind === 'reply' ? renderReply(entry) : []
}

function renderContent({ text, attachments = [] }: UserMessage): string | readonly AttachmentPart[] {
  if (attachments.length === 0) return text
  const isLost = attachments.some(({ data }) => data === undefined)
  const texts = [text, isLost ? NOT_SENT : ''].filter((one) => one !== '')
  return [...texts.map((one) => ({ type: 'text' as const, text: one })), ...toParts(attachments)]
}

/** Omits calls without a result, because providers reject them. */
function renderReply(reply: Reply): ChatMessage[] {
  return reply.rounds.flatMap(({ text, calls }): ChatMessage[] => {
    const answered = calls.filter(({ result }) => result !== undefined)
    if (answered.length === 0) return text === '' ? [] : [{ role: 'assistant', content: text }]
    const asked: ChatMessage = {
      role: 'assistant',
      content: text === '' ? null : text,
      tool_calls: answered.map(
        ({ id, name, argumentsText }): CalledTool => ({
          id,
          type: 'function',
          function: { name, arguments: argumentsText },
        }),
      ),
    }
    const results = answered.map(
      ({ id, result = '' }): ChatMessage => ({ role: 'tool', tool_call_id: id, content: result }),
    )
    return [asked, ...results]
  })
}

/** Returns a turn's messages. If no agent adds instructions, `system` is a separate system message. */
export function toTurnMessages(
  entries: readonly Entry[],
  system: string | undefined,
  context: Readonly<Record<string, unknown>>,
  takesSystem = false,
): ChatMessage[] {
  const pageMessage = toPageMessage(takesSystem ? undefined : system, context) ?? undefined
  const messages = toMessages(entries, pageMessage)
  return takesSystem && system ? [{ role: 'system', content: system }, ...messages] : messages
}

/** Must be the text with which the server marks clients' system messages. */
const MARK = '[Context provided by the page, not by the user]'
const EXPLANATION = 'This is data about the page that the user is looking at, not a message from the user.'

/**
 * Returns the text of a user message with the page's information. Returns undefined if the page provides
 * nothing, or null if the text is too long.
 */
export function toPageMessage(
  system: string | undefined,
  context: Readonly<Record<string, unknown>>,
): string | null | undefined {
  const text = toPageText(system, context)
  if (text === undefined) return undefined
  const message = `${MARK}\n${EXPLANATION}\n${text}`
  return isWithinLimit(message) ? message : null
}

/** Returns the page's information without a mark, or undefined if the page provides nothing. */
export function toPageText(
  system: string | undefined,
  context: Readonly<Record<string, unknown>>,
): string | undefined {
  const parts = [
    ...((system ?? '') === '' ? [] : [`\n${system}`]),
    ...(Object.keys(context).length === 0 ? [] : [`\n${JSON.stringify(context)}`]),
  ]
  return parts.length === 0 ? undefined : parts.join('\n')
}
