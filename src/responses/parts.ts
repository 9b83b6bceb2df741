/** The kinds of text in a response's items: how each begins, grows and ends, and the events that say so. */
import type { Part, UnnumberedEvent } from './answer-schema.ts'

/** Where a part stands. */
export interface Place {
  readonly output_index: number
  readonly item_id: string
  readonly content_index: number
}

/** A part nothing has been said in. */
export function newPart(type: Part['type']): Part {
  switch (type) {
    case 'output_text':
      return { type, text: '', annotations: [], logprobs: [] }
    case 'refusal':
      return { type, refusal: '' }
    case 'reasoning_text':
      return { type, text: '' }
  }
}

/** Adds to a part what is new, which is of the same kind. */
export function growPart(part: Part, news: Part, place: Place): UnnumberedEvent {
  if (part.type === 'output_text' && news.type === 'output_text') {
    const { text: delta, logprobs } = news
    part.text += delta
    part.logprobs.push(...logprobs)
    return { type: 'response.output_text.delta', ...place, delta, logprobs }
  }
  if (part.type === 'refusal' && news.type === 'refusal') {
    part.refusal += news.refusal
    return { type: 'response.refusal.delta', ...place, delta: news.refusal }
  }
  if (part.type === 'reasoning_text' && news.type === 'reasoning_text') {
    part.text += news.text
    return { type: 'response.reasoning_text.delta', ...place, delta: news.text }
  }
  throw new Error(`a part of ${part.type} cannot take ${news.type}`)
}

/** Says that a part is whole. */
export function endPart(part: Part, place: Place): UnnumberedEvent {
  switch (part.type) {
    case 'output_text': {
      const { text, logprobs } = part
      return { type: 'response.output_text.done', ...place, text, logprobs }
    }
    case 'refusal':
      return { type: 'response.refusal.done', ...place, refusal: part.refusal }
    case 'reasoning_text':
      return { type: 'response.reasoning_text.done', ...place, text: part.text }
  }
}
