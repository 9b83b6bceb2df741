/** Converts a Responses API request to a chat request. */
import { ServiceError } from '../lib/errors.ts'
import type { ChatMessage, ChatRequest, ChatTool } from '../providers/chat-api.ts'
import { present } from './answer.ts'
import type {
  FunctionCall,
  FunctionTool,
  InputItem,
  InputPart,
  ResponsesRequest,
  SaidPart,
  TextFormat,
  ToolChoice,
} from './schema.ts'

const LOGPROBS = 'message.output_text.logprobs'

/**
 * Converts a request whose input follows the stored items `history`. Sends the token limit as `max_tokens`,
 * because some providers ignore the newer field. @throws ServiceError
 */
export function toChatRequest(request: ResponsesRequest, history: readonly InputItem[] = []): ChatRequest {
  const { instructions, text, reasoning, stream, top_logprobs } = request
  const wantsLogprobs = request.include?.includes(LOGPROBS) || (top_logprobs ?? 0) > 0
  return {
    messages: [
      ...(instructions ? [{ role: 'system' as const, content: instructions }] : []),
      ...toMessages(history, request.input),
    ],
    ...present({
      model: request.model,
      temperature: request.temperature,
      top_p: request.top_p,
      max_tokens: request.max_output_tokens,
      tools: request.tools?.map(toTool),
      tool_choice: request.tool_choice && toToolChoice(request.tool_choice),
      parallel_tool_calls: request.parallel_tool_calls,
      response_format: text?.format && toResponseFormat(text.format),
      verbosity: text?.verbosity,
      reasoning_effort: reasoning?.effort,
      user: request.user,
      safety_identifier: request.safety_identifier,
      prompt_cache_key: request.prompt_cache_key,
      prompt_cache_retention: request.prompt_cache_retention,
      service_tier: request.service_tier,
    }),
    ...(wantsLogprobs ? { logprobs: true, ...(top_logprobs ? { top_logprobs } : {}) } : {}),
    ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
  }
}

function toTool({ name, description, parameters, strict }: FunctionTool): ChatTool {
  return { type: 'function', function: { name, ...present({ description, parameters, strict }) } }
}

function toToolChoice(choice: ToolChoice): ChatRequest['tool_choice'] {
  if (typeof choice === 'string') return choice
  const named = ({ name }: { name: string }) => ({ type: 'function', function: { name } })
  if (choice.type === 'function') return named(choice)
  const { mode, tools } = choice
  return { type: 'allowed_tools', allowed_tools: { mode, tools: tools.map(named) } }
}

function toResponseFormat(format: TextFormat): ChatRequest['response_format'] {
  if (format.type === 'text') return undefined
  if (format.type === 'json_object') return { type: 'json_object' }
  const { name, description, schema, strict } = format
  return { type: 'json_schema', json_schema: present({ name, description, schema, strict }) }
}

type Content = Extract<ChatMessage, { role: 'user' }>['content']

/**
 * Converts items to messages. Merges a model's text and calls into one message, and omits reasoning. @throws
 * ServiceError `invalid_value`
 */
function toMessages(history: readonly InputItem[], input: ResponsesRequest['input']): ChatMessage[] {
  if (input == null) throw new ServiceError('invalid_value', 'input: is required', { param: 'input' })
  const messages: ChatMessage[] = []
  const calledIds = new Set<string>()
  const items: readonly InputItem[] = typeof input === 'string' ? [{ role: 'user', content: input }] : input
  for (const item of moveOutputsToCalls([...history, ...items])) {
    const isAdded = addItem(messages, calledIds, item)
    // The history may contain results without a call, because it may begin after the call.
    if (!isAdded && items.includes(item)) throw orphan(items.indexOf(item))
  }
  if (messages.length === 0)
    throw new ServiceError('invalid_value', 'input: must contain at least one message', { param: 'input' })
  return messages
}

/**
 * Moves outputs to their calls if messages from other authors are between them, because providers reject such
 * requests. A conversation contains such messages if a person answered it while the client ran its functions.
 */
function moveOutputsToCalls(items: readonly InputItem[]): readonly InputItem[] {
  const calls = new Map<string, number>()
  const moved = new Map<number, InputItem[]>()
  let lastMessage = -1
  const kept = items.map((item, index) => {
    if (item.type === 'function_call') calls.set(item.call_id, index)
    else if ('role' in item && item.role !== 'assistant') lastMessage = index
    const call = item.type === 'function_call_output' ? calls.get(item.call_id) : undefined
    if (call === undefined || call > lastMessage) return [item]
    const end = findEndOfCalls(items, call)
    moved.set(end, [...(moved.get(end) ?? []), item])
    return []
  })
  return moved.size === 0 ? items : kept.flatMap((item, index) => [...item, ...(moved.get(index) ?? [])])
}

/** Returns the index of the last of the consecutive calls and outputs that begin at `index`. */
function findEndOfCalls(items: readonly InputItem[], index: number): number {
  let end = index
  while (items[end + 1]?.type === 'function_call' || items[end + 1]?.type === 'function_call_output') end += 1
  return end
}

/** Adds an item to the messages. Returns false if it is the output of an unknown call, which is not added. */
function addItem(messages: ChatMessage[], calledIds: Set<string>, item: InputItem): boolean {
  if (item.type === 'function_call_output') {
    if (!calledIds.has(item.call_id)) return false
    messages.push({ role: 'tool', tool_call_id: item.call_id, content: toContent(item.output) })
  } else if (item.type === 'function_call') {
    calledIds.add(item.call_id)
    addCall(messages, item)
  } else if (item.type !== 'reasoning' && item.type !== 'item_reference') addMessage(messages, item)
  return true
}

function orphan(index: number): ServiceError {
  const param = `input[${index}].call_id`
  return new ServiceError('invalid_value', `${param}: must be the id of an earlier function_call`, { param })
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
  // Joins the parts, because some providers reject lists in assistant messages.
  const said = typeof item.content === 'string' ? item.content : item.content.map(textOf).join('')
  const last = messages.at(-1)
  // The chat API does not allow text between calls and their results.
  if (last?.role === 'assistant' && last.tool_calls) last.content = `${last.content ?? ''}${said}`
  else messages.push({ role: 'assistant', content: said })
}

function textOf(part: SaidPart): string {
  return part.type === 'refusal' ? part.refusal : part.text
}

/** Sends a single text as a string, which every provider accepts. */
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
