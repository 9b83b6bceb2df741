/** Builds a Responses API response from chat chunks, and reports each step as an event. */
import type { Dependencies } from '../chat/dependencies.ts'
import { type ChatPiece, callsOf, partsOf, toResponseUsage } from '../conversations/chat-piece.ts'
import { type OnEvent, Output } from '../conversations/output.ts'
import type { ResponseEcho, ResponseObject } from '../conversations/response-schema.ts'
import { unixSeconds } from '../lib/clock.ts'
import type { ServiceError } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { pickCost } from '../prices/call-cost.ts'
import type { ResponsesRequest } from './schema.ts'

const ID_LENGTH = 24

/** The fields of a response that do not depend on its content. They never change for a stored response. */
export interface Identity {
  readonly id: string
  /** Unix seconds. */
  readonly createdAt: number
  readonly newItemId: (prefix: string) => string
  readonly store: boolean
  readonly background: boolean
  readonly previousResponseId: string | null
  readonly conversationId: string | null
}

/** The reason why a response ended before the model finished. */
export type Interruption = 'cancelled' | 'interrupted'

/** Creates the identity of a response that is not stored. */
export function newIdentity(
  { clock, random }: Pick<Dependencies, 'clock' | 'random'>,
  { previous_response_id: previousId, conversation }: ResponsesRequest,
): Identity {
  return {
    id: newId('resp_', ID_LENGTH, random),
    createdAt: unixSeconds(clock),
    newItemId: (prefix) => newId(prefix, ID_LENGTH, random),
    store: false,
    background: false,
    previousResponseId: previousId ?? null,
    conversationId: conversationIdOf(conversation) ?? null,
  }
}

const incompleteReasons: Readonly<Record<string, 'max_output_tokens' | 'content_filter'>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
}

export function conversationIdOf(conversation: ResponsesRequest['conversation']): string | undefined {
  return typeof conversation === 'string' ? conversation : conversation?.id
}

export class Answer {
  private readonly identity: Identity
  private readonly onEvent: OnEvent
  private readonly output: Output
  private readonly echo: ResponseEcho
  private model: string
  private serviceTier: string
  private finish: string | undefined
  private usage: ResponseObject['usage'] = null
  private isBegun = false

  constructor(identity: Identity, request: ResponsesRequest, onEvent: OnEvent) {
    this.identity = identity
    this.onEvent = onEvent
    this.output = new Output(identity.newItemId, onEvent)
    this.echo = toEcho(request)
    this.model = request.model ?? ''
    this.serviceTier = request.service_tier ?? 'default'
  }

  take(piece: ChatPiece): void {
    this.model = piece.model
    if (typeof piece.service_tier === 'string') this.serviceTier = piece.service_tier
    this.begin()
    if (piece.usage) this.usage = { ...toResponseUsage(piece.usage), ...pickCost(piece.usage) }
    const [choice] = piece.choices
    if (choice === undefined) return
    for (const part of partsOf(choice)) this.output.addPart(part)
    for (const call of callsOf(choice)) this.output.addCall(call)
    this.finish = choice.finish_reason ?? this.finish
  }

  /** `endedAt` is in Unix seconds. */
  end(endedAt: number, interruption?: Interruption): ResponseObject {
    this.begin()
    // Cancelled responses have a reason too: without one, the AI SDK reports that the model stopped by
    // itself.
    const reason = interruption === undefined ? incompleteReasons[this.finish ?? ''] : 'interrupted'
    const isComplete = reason === undefined
    this.output.close(!isComplete)
    const response: ResponseObject = isComplete
      ? { ...this.render('completed'), completed_at: endedAt }
      : {
          ...this.render(interruption === 'cancelled' ? 'cancelled' : 'incomplete'),
          incomplete_details: { reason },
        }
    this.onEvent({ type: isComplete ? 'response.completed' : 'response.incomplete', response })
    return response
  }

  fail({ code, message }: Pick<ServiceError, 'code' | 'message'>): ResponseObject {
    this.begin()
    this.output.abandon()
    const response: ResponseObject = { ...this.render('failed'), error: { code, message } }
    this.onEvent({ type: 'response.failed', response })
    return response
  }

  current(status: 'queued' | 'in_progress'): ResponseObject {
    return this.render(status)
  }

  private begin(): void {
    if (this.isBegun) return
    this.isBegun = true
    this.onEvent({ type: 'response.created', response: this.render('in_progress') })
    this.onEvent({ type: 'response.in_progress', response: this.render('in_progress') })
  }

  private render(status: ResponseObject['status']): ResponseObject {
    const { id, createdAt, store, background, previousResponseId, conversationId } = this.identity
    return {
      id,
      object: 'response',
      created_at: createdAt,
      completed_at: null,
      status,
      error: null,
      incomplete_details: null,
      model: this.model,
      output: this.output.items,
      usage: this.usage,
      service_tier: this.serviceTier,
      ...this.echo,
      store,
      background,
      truncation: 'disabled',
      previous_response_id: previousResponseId,
      conversation: conversationId === null ? null : { id: conversationId },
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
    temperature: request.temperature ?? 1,
    top_p: request.top_p ?? 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    max_output_tokens: request.max_output_tokens ?? null,
    text: { ...text, format: text?.format ?? { type: 'text' } },
    reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
    top_logprobs: request.top_logprobs ?? 0,
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
