/** Converts between the messages of a chat and the items of a conversation, which have the form of OpenAI's API. */
import { newId, type Random } from '../lib/ids.ts'
import type { ChatMessage } from '../providers/chat-api.ts'
import type { NewItem } from './store.ts'

const ID_LENGTH = 24

/** The messages after the model's last answer: what a chat request adds to the conversation. */
export function toChatItems(messages: readonly ChatMessage[], random: Random): NewItem[] {
  const lastAnswer = messages.findLastIndex(({ role }) => role === 'assistant')
  return messages.slice(lastAnswer + 1).map((message) => toItem(message, random))
}

function toItem(message: ChatMessage, random: Random): NewItem {
  if (message.role === 'tool') {
    const id = newId('fco_', ID_LENGTH, random)
    const { tool_call_id: call_id, content } = message
    return {
      ...{ id, type: 'function_call_output', role: null, author: 'page', status: 'completed' },
      body: { type: 'function_call_output', id, call_id, output: textOf(content), status: 'completed' },
      isForVisitor: false,
    }
  }
  const role = message.role === 'function' ? 'user' : message.role
  const id = newId('msg_', ID_LENGTH, random)
  return {
    ...{ id, type: 'message', role, status: 'completed' },
    author: role === 'user' ? 'visitor' : 'page',
    body: { type: 'message', id, role, status: 'completed', content: toParts(message.content) },
    isForVisitor: role === 'user',
  }
}

type Content = ChatMessage['content']

function toParts(content: Content): object[] {
  if (content == null) return []
  if (typeof content === 'string') return [{ type: 'input_text', text: content }]
  return content.map((part) => toPart(part as { type: string; [field: string]: unknown }))
}

/** Parts that OpenAI's items do not have keep the form of the chat API. */
function toPart(part: { type: string; [field: string]: unknown }): object {
  if (part.type === 'text') return { type: 'input_text', text: part.text }
  if (part.type === 'image_url') {
    const { url, detail } = part.image_url as { url: string; detail?: string }
    return { type: 'input_image', image_url: url, detail: detail ?? 'auto' }
  }
  if (part.type === 'file') return { type: 'input_file', ...(part.file as object) }
  return part
}

function textOf(content: Content): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => (typeof part.text === 'string' ? part.text : '')).join('')
}
