/** Repeats a request in its response. */
import type { ResponseEcho } from './answer-schema.ts'
import type { ResponsesRequest } from './schema.ts'

/** What the response repeats, with the defaults of the API for what was not said. Protocol: Responses API. */
export function toEcho(request: ResponsesRequest): ResponseEcho {
  const { tools, text, reasoning, user } = request
  return {
    instructions: request.instructions ?? null,
    tools: (tools ?? []).map((tool) => ({
      ...tool,
      description: tool.description ?? null,
      parameters: tool.parameters ?? null,
      strict: tool.strict ?? null,
    })),
    tool_choice: request.tool_choice ?? 'auto',
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    max_tool_calls: request.max_tool_calls ?? null,
    temperature: request.temperature ?? null,
    top_p: request.top_p ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    text: { ...text, format: text?.format ?? { type: 'text' } },
    reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
    top_logprobs: request.top_logprobs ?? null,
    metadata: request.metadata ?? {},
    ...(user == null ? {} : { user }),
    safety_identifier: request.safety_identifier ?? null,
    prompt_cache_key: request.prompt_cache_key ?? null,
  }
}
