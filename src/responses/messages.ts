/** Turns the input of a response into the messages of a chat. */
import type { ChatMessage } from '../chat/schema.ts'
import { ServiceError } from '../errors.ts'
import { present } from './present.ts'
import type { FunctionCall, InputItem, InputPart, ResponsesRequest, SaidPart } from './schema.ts'

type Content = Extract<ChatMessage, { role: 'user' }>['content']
type AssistantMessage = Extract<ChatMessage, { role: 'assistant' }>

/**
 * The messages an input stands for: what the model said and the calls it made with it are one message. Reasoning is left out: the chat
 * API takes none.
 * @throws ServiceError `invalid_value` for the output of a call nobody made, and for an input without a message.
 */
export function toMessages(input: ResponsesRequest['input']): ChatMessage[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  const messages: ChatMessage[] = []
  const calledIds = new Set<string>()
  for (const [index, item] of input.entries()) {
    if (item.type === 'function_call_output') {
      if (!calledIds.has(item.call_id)) throw orphan(index)
      messages.push({ role: 'tool', tool_call_id: item.call_id, content: toContent(item.output) })
    } else if (item.type === 'function_call') {
      calledIds.add(item.call_id)
      addCall(messages, item)
    } else if (item.type !== 'reasoning') addMessage(messages, item)
  }
  if (messages.length === 0)
    throw new ServiceError('invalid_value', 'input: holds no message', { param: 'input' })
  return messages
}

function orphan(index: number): ServiceError {
  const param = `input[${index}].call_id`
  return new ServiceError('invalid_value', `${param}: no function_call before it has this id`, { param })
}

function addCall(messages: ChatMessage[], call: FunctionCall): void {
  const toolCall = {
    id: call.call_id,
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  }
  const last = messages.at(-1)
  if (last?.role === 'assistant') last.tool_calls = [...(last.tool_calls ?? []), toolCall]
  else messages.push({ role: 'assistant', content: null, tool_calls: [toolCall] })
}

function addMessage(messages: ChatMessage[], item: Extract<InputItem, { role: string }>): void {
  if (item.role !== 'assistant') {
    messages.push({ role: item.role, content: toContent(item.content) })
    return
  }
  const said = typeof item.content === 'string' ? item.content : item.content.map(textOf).join('')
  const last = messages.at(-1)
  // A chat has no place for words between calls and their results.
  if (last?.role === 'assistant' && last.tool_calls) addWords(last, said)
  else messages.push({ role: 'assistant', content: said })
}

function addWords(message: AssistantMessage, said: string): void {
  message.content = `${message.content ?? ''}${said}`
}

/** What was said, as text: not every backend takes an assistant's message in parts. */
function textOf(part: SaidPart): string {
  return part.type === 'refusal' ? part.refusal : part.text
}

/** A lone text stays text, which every backend takes. */
function toContent(content: string | readonly InputPart[]): Content {
  if (typeof content === 'string') return content
  const [first, ...others] = content.map(toPart)
  if (first?.type === 'text' && others.length === 0) return first.text as string
  return first === undefined ? '' : [first, ...others]
}

function toPart(part: InputPart): { type: string; [field: string]: unknown } {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
      return { type: 'text', text: part.text }
    case 'input_image':
      return { type: 'image_url', image_url: present({ url: part.image_url, detail: part.detail }) }
    case 'input_file': {
      const { file_data, file_id, filename } = part
      return { type: 'file', file: present({ file_data, file_id, filename }) }
    }
    case 'input_audio':
      return { type: 'input_audio', input_audio: part.input_audio }
  }
}
