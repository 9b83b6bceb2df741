/** Renders a model's answer in the chat API's format, as one response or as a stream of events. */
import {
  type AnswerHead,
  doneEvent,
  eventEnd,
  openEvent,
  renderCompletion,
  renderUsageEvent,
} from '../../../src/providers/render-answer.ts'
import type { Listener, LocalAnswer, LocalCall } from './generate.ts'

type Read = IteratorResult<Uint8Array, void>

export function createWholeWriter(newCallId: () => string) {
  let content = ''
  let thoughts = ''
  const calls: object[] = []
  return {
    onText(text: string) {
      content += text
    },
    onThought(text: string) {
      thoughts += text
    },
    onCall: (call: LocalCall) => calls.push(toToolCall(call, newCallId)),
    render(head: AnswerHead, answer: LocalAnswer): string {
      const message = {
        role: 'assistant',
        content: content === '' && calls.length > 0 ? null : content,
        ...(thoughts !== '' && { reasoning_content: thoughts }),
        ...(calls.length > 0 && { tool_calls: calls }),
      }
      const choice = { index: 0, message, logprobs: null, finish_reason: answer.finish }
      return renderCompletion(head, [choice], toUsage(answer))
    },
  }
}

/** Streams an answer as server-sent events. Sends nothing before the first text or tool call. */
export class EventWriter implements Listener, AsyncIterator<Uint8Array, void, void> {
  private readonly opening: string
  private readonly newCallId: () => string
  private readonly onReturn: () => void
  private hasBegun = false
  private calls = 0
  private unread = ''
  private end: { readonly failure?: { readonly reason: unknown } } | undefined
  private wake = () => {}

  /** `onReturn` is called if the reader stops early. */
  constructor(head: AnswerHead, newCallId: () => string, onReturn: () => void) {
    this.opening = openEvent(head)
    this.newCallId = newCallId
    this.onReturn = onReturn
  }

  onText(content: string): void {
    this.writeDelta({ content })
  }

  onThought(reasoning_content: string): void {
    this.writeDelta({ reasoning_content })
  }

  onCall(call: LocalCall): void {
    this.writeDelta({ tool_calls: [{ index: this.calls, ...toToolCall(call, this.newCallId) }] })
    this.calls += 1
  }

  finish(answer: LocalAnswer, hasUsage: boolean): void {
    if (!this.hasBegun) this.writeDelta({ content: '' })
    this.writeChoice({}, answer.finish)
    if (hasUsage) this.unread += renderUsageEvent(this.opening, toUsage(answer))
    this.unread += doneEvent
    this.end ??= {}
    this.wake()
  }

  /** Fails the stream after all pending output has been read. */
  fail(reason: unknown): void {
    this.end ??= { failure: { reason } }
    this.wake()
  }

  /** Returns everything written since the last read. */
  async next(): Promise<Read> {
    while (this.unread === '' && this.end === undefined) {
      await new Promise<void>((resolve) => {
        this.wake = resolve
      })
    }
    if (this.unread !== '') {
      const value = Buffer.from(this.unread)
      this.unread = ''
      return { done: false, value }
    }
    const failure = this.end?.failure
    this.end = {}
    if (failure !== undefined) throw failure.reason
    return { done: true, value: undefined }
  }

  async return(): Promise<Read> {
    this.unread = ''
    this.end = {}
    this.wake()
    this.onReturn()
    return { done: true, value: undefined }
  }

  private writeDelta(delta: object): void {
    this.writeChoice(this.hasBegun ? delta : { role: 'assistant', ...delta }, null)
    this.hasBegun = true
  }

  private writeChoice(delta: object, finish_reason: string | null): void {
    this.unread += this.opening + JSON.stringify({ index: 0, delta, finish_reason }) + eventEnd
    this.wake()
  }
}

function toToolCall(call: LocalCall, newCallId: () => string): object {
  return { id: newCallId(), type: 'function', function: call }
}

function toUsage({ promptTokens, completionTokens }: LocalAnswer): object {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  }
}
