/** Builds a Responses API response from chat chunks, and reports each step as an event. */
import type { Dependencies } from '../chat/dependencies.ts'
import { unixSeconds } from '../lib/clock.ts'
import type { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import type { ResponseEcho, ResponseObject } from './answer-schema.ts'
import { type ChatPiece, callsOf, partsOf, toResponseUsage } from './chat-piece.ts'
import { type OnEvent, Output } from './output.ts'
import type { ResponsesRequest } from './schema.ts'

const ID_LENGTH = 24

type Clocks = Pick<Dependencies, 'clock' | 'random'>

const incompleteReasons: Readonly<Record<string, 'max_output_tokens' | 'content_filter'>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
}

export class Answer {
  private readonly deps: Clocks
  private readonly onEvent: OnEvent
  private readonly output: Output
  private readonly echo: ResponseEcho
  private readonly id: string
  private readonly createdAt: number
  private model: string
  private serviceTier: string | null
  private finish: string | undefined
  private usage: ResponseObject['usage'] = null
  private isBegun = false

  constructor(deps: Clocks, request: ResponsesRequest, onEvent: OnEvent) {
    const { clock, random } = deps
    this.deps = deps
    this.onEvent = onEvent
    this.output = new Output((prefix) => newId(prefix, ID_LENGTH, random), onEvent)
    this.echo = toEcho(request)
    this.id = newId('resp_', ID_LENGTH, random)
    this.createdAt = unixSeconds(clock)
    this.model = request.model ?? ''
    this.serviceTier = request.service_tier ?? null
  }

  take(piece: ChatPiece): void {
    this.model = piece.model
    if (typeof piece.service_tier === 'string') this.serviceTier = piece.service_tier
    this.begin()
    if (piece.usage) this.usage = toResponseUsage(piece.usage)
    const [choice] = piece.choices
    if (choice === undefined) return
    for (const part of partsOf(choice)) this.output.addPart(part)
    for (const call of callsOf(choice)) this.output.addCall(call)
    this.finish = choice.finish_reason ?? this.finish
  }

  end(): ResponseObject {
    const reason = incompleteReasons[this.finish ?? '']
    this.output.close(reason !== undefined)
    const response: ResponseObject =
      reason === undefined
        ? { ...this.render('completed'), completed_at: unixSeconds(this.deps.clock) }
        : { ...this.render('incomplete'), incomplete_details: { reason } }
    this.onEvent({ type: reason === undefined ? 'response.completed' : 'response.incomplete', response })
    return response
  }

  fail({ code, message }: ServiceError): void {
    this.begin()
    this.output.abandon()
    this.onEvent({
      type: 'response.failed',
      response: { ...this.render('failed'), error: { code, message } },
    })
  }

  private begin(): void {
    if (this.isBegun) return
    this.isBegun = true
    this.onEvent({ type: 'response.created', response: this.render('in_progress') })
    this.onEvent({ type: 'response.in_progress', response: this.render('in_progress') })
  }

  private render(status: ResponseObject['status']): ResponseObject {
    return {
      id: this.id,
      object: 'response',
      created_at: this.createdAt,
      completed_at: null,
      status,
      error: null,
      incomplete_details: null,
      model: this.model,
      output: this.output.items,
      usage: this.usage,
      service_tier: this.serviceTier,
      ...this.echo,
      store: false,
      background: false,
      truncation: 'disabled',
      previous_response_id: null,
      conversation: null,
      prompt: null,
      access_programs: null,
    }
  }
}

function toEcho(request: ResponsesRequest): ResponseEcho {
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

/** Drops null fields, because the API treats null optional fields as absent. */
export function present(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  )
}
