/** Writes what a model says in the chat API's format, whole or as events. */
import {
  type AnswerHead,
  doneEvent,
  eventEnd,
  openEvent,
  renderCompletion,
  renderUsageEvent,
} from '../render-answer.ts'
import type { EventStream } from './events.ts'
import type { LocalAnswer } from './generate.ts'
import type { Listener, LocalCall } from './sampling.ts'

/** A new tool call id. */
type NewCallId = () => string

/** Collects an answer. */
export class WholeWriter implements Listener {
  private text = ''
  private thoughts = ''
  private readonly calls: object[] = []
  private readonly newCallId: NewCallId

  constructor(newCallId: NewCallId) {
    this.newCallId = newCallId
  }

  onText(text: string): void {
    this.text += text
  }

  onThought(text: string): void {
    this.thoughts += text
  }

  onCall(call: LocalCall): void {
    this.calls.push(toToolCall(call, this.newCallId))
  }

  /** All of it. Contract: Chat completion (response). */
  render(head: AnswerHead, answer: LocalAnswer): string {
    const { text, thoughts, calls } = this
    const message = {
      role: 'assistant',
      content: text === '' && calls.length > 0 ? null : text,
      ...(thoughts !== '' && { reasoning_content: thoughts }),
      ...(calls.length > 0 && { tool_calls: calls }),
    }
    const choice = { index: 0, message, logprobs: null, finish_reason: answer.finish }
    return renderCompletion(head, [choice], toUsage(answer))
  }
}

/** Streams an answer; its first event comes with its first word. Contract: Streaming chunk. Decision: 12. */
export class EventWriter implements Listener {
  private readonly events: EventStream
  private readonly opening: string
  private readonly newCallId: NewCallId
  private hasBegun = false
  private calls = 0

  constructor(events: EventStream, head: AnswerHead, newCallId: NewCallId) {
    this.events = events
    this.opening = openEvent(head)
    this.newCallId = newCallId
  }

  onText(content: string): void {
    this.say({ content })
  }

  onThought(reasoning_content: string): void {
    this.say({ reasoning_content })
  }

  onCall(call: LocalCall): void {
    this.say({ tool_calls: [{ index: this.calls, ...toToolCall(call, this.newCallId) }] })
    this.calls += 1
  }

  /** The finish, the usage if it is wanted, and the end of the stream. */
  end(answer: LocalAnswer, hasUsage: boolean): void {
    if (!this.hasBegun) this.say({ content: '' })
    this.write({}, answer.finish)
    if (hasUsage) this.events.write(renderUsageEvent(this.opening, toUsage(answer)))
    this.events.write(doneEvent)
    this.events.finish()
  }

  private say(delta: object): void {
    this.write(this.hasBegun ? delta : { role: 'assistant', ...delta }, null)
    this.hasBegun = true
  }

  private write(delta: object, finish: string | null): void {
    const choice = { index: 0, delta, finish_reason: finish }
    this.events.write(this.opening + JSON.stringify(choice) + eventEnd)
  }
}

function toToolCall(call: LocalCall, newCallId: NewCallId): object {
  return { id: newCallId(), type: 'function', function: call }
}

function toUsage({ promptTokens, completionTokens }: LocalAnswer): object {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  }
}
