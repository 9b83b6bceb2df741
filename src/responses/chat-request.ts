/** Turns a request of the Responses API into the chat request that answers it. */
import type { ChatRequest, ChatTool } from '../chat/schema.ts'
import { toMessages } from './messages.ts'
import { present } from './present.ts'
import type { FunctionTool, ResponsesRequest, TextFormat, ToolChoice } from './schema.ts'

/** What a client lists in `include` to be told how likely each token was. */
const LOGPROBS = 'message.output_text.logprobs'

/**
 * The chat request: only what the chat API has a field for goes on. The bound on an answer goes into `max_tokens`, which every backend
 * heeds; some read past the newer field.
 * @throws ServiceError as `toMessages` does.
 */
export function toChatRequest(request: ResponsesRequest): ChatRequest {
  const { instructions, text, reasoning, stream, top_logprobs } = request
  const wantsLogprobs = request.include?.includes(LOGPROBS) || (top_logprobs ?? 0) > 0
  return {
    messages: [
      ...(instructions ? [{ role: 'system' as const, content: instructions }] : []),
      ...toMessages(request.input),
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
