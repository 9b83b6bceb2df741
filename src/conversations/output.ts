/** Builds a response's output items, and reports each step as an event. */
import type { OutputCall, OutputItem, Part, UnnumberedEvent } from './response-schema.ts'

/** Handlers must encode the event before they return, because its items change later. */
export type OnEvent = (event: UnnumberedEvent) => void

export interface CallAddition {
  readonly index: number
  readonly id: string | undefined
  readonly name: string | undefined
  readonly arguments: string
}

type Status = OutputItem['status']
type Speech = Extract<OutputItem, { content: unknown }>

interface Open<Item extends OutputItem> {
  readonly item: Item
  readonly index: number
}

export class Output {
  readonly items: OutputItem[] = []
  private speech: Open<Speech> | undefined
  /** Open calls by their index in the chat response, which may continue any of them until it ends. */
  private readonly calls = new Map<number, Open<OutputCall>>()
  private readonly newId: (prefix: string) => string
  private readonly onEvent: OnEvent

  constructor(newId: (prefix: string) => string, onEvent: OnEvent) {
    this.newId = newId
    this.onEvent = onEvent
  }

  addPart(added: Part): void {
    const open = this.openSpeech(added.type)
    this.onEvent(growPart(lastPart(open), added, placeOf(open)))
  }

  addCall({ index, id, name, arguments: delta }: CallAddition): void {
    const open = this.calls.get(index) ?? this.beginCall(index, id, name)
    if (open === undefined || delta === '') return
    const { item } = open
    item.arguments += delta
    const place = { output_index: open.index, item_id: item.id }
    this.onEvent({ type: 'response.function_call_arguments.delta', ...place, delta })
  }

  /**
   * Closes the open items; if the response was truncated, marks the last one as incomplete. Adds an empty
   * message to a complete response without a message or call.
   */
  close(isCutOff: boolean): void {
    if (!isCutOff && this.items.every(({ type }) => type === 'reasoning')) this.openSpeech('output_text')
    const open = this.listOpen()
    for (const each of open) {
      const status = isCutOff && each === open.at(-1) ? 'incomplete' : 'completed'
      this.endContent(each)
      this.endItem(each, status)
    }
  }

  abandon(): void {
    for (const { item } of this.listOpen()) item.status = 'incomplete'
  }

  private listOpen(): Open<OutputItem>[] {
    const open = [...this.calls.values(), ...(this.speech === undefined ? [] : [this.speech])]
    return open.sort((one, other) => one.index - other.index)
  }

  private openSpeech(kind: Part['type']): Open<Speech> {
    const wanted = kind === 'reasoning_text' ? 'reasoning' : 'message'
    if (this.speech?.item.type !== wanted) {
      this.endSpeech()
      this.speech = this.beginItem(this.newSpeech(wanted))
    }
    const { speech } = this
    const parts: Part[] = speech.item.content
    if (parts.at(-1)?.type === kind) return speech
    if (parts.length > 0) this.endContent(speech)
    const part = newPart(kind)
    parts.push(part)
    this.onEvent({ type: 'response.content_part.added', ...placeOf(speech), part })
    return speech
  }

  private newSpeech(type: Speech['type']): Speech {
    const status = 'in_progress'
    return type === 'reasoning'
      ? { type, id: this.newId('rs_'), status, summary: [], content: [] }
      : { type, id: this.newId('msg_'), status, role: 'assistant', content: [] }
  }

  private endSpeech(): void {
    if (this.speech === undefined) return
    this.endContent(this.speech)
    this.endItem(this.speech, 'completed')
    this.speech = undefined
  }

  private beginCall(index: number, id?: string, name?: string): Open<OutputCall> | undefined {
    if (id === undefined || name === undefined) return undefined
    this.endSpeech()
    const item: OutputCall = {
      type: 'function_call',
      id: this.newId('fc_'),
      status: 'in_progress',
      call_id: id,
      name,
      arguments: '',
    }
    const open = this.beginItem(item)
    this.calls.set(index, open)
    return open
  }

  private beginItem<Item extends OutputItem>(item: Item): Open<Item> {
    const index = this.items.push(item) - 1
    this.onEvent({ type: 'response.output_item.added', output_index: index, item })
    return { item, index }
  }

  private endContent({ item, index }: Open<OutputItem>): void {
    if (item.type === 'function_call') {
      const { id, name, arguments: text } = item
      const place = { output_index: index, item_id: id }
      this.onEvent({ type: 'response.function_call_arguments.done', ...place, name, arguments: text })
      return
    }
    const place = placeOf({ item, index })
    const part = lastPart({ item, index })
    this.onEvent(endPart(part, place))
    this.onEvent({ type: 'response.content_part.done', ...place, part })
  }

  private endItem({ item, index }: Open<OutputItem>, status: Status): void {
    item.status = status
    this.onEvent({ type: 'response.output_item.done', output_index: index, item })
  }
}

function lastPart({ item }: Open<Speech>): Part {
  return item.content.at(-1) as Part
}

function placeOf({ item, index }: Open<Speech>) {
  return { output_index: index, item_id: item.id, content_index: item.content.length - 1 }
}

type Place = ReturnType<typeof placeOf>

function newPart(type: Part['type']): Part {
  switch (type) {
    case 'output_text':
      return { type, text: '', annotations: [], logprobs: [] }
    case 'refusal':
      return { type, refusal: '' }
    case 'reasoning_text':
      return { type, text: '' }
  }
}

function growPart(part: Part, added: Part, place: Place): UnnumberedEvent {
  if (part.type === 'output_text' && added.type === 'output_text') {
    const { text: delta, logprobs } = added
    part.text += delta
    // Pushes items individually, because spreading a long list into arguments would overflow the stack.
    for (const each of logprobs) part.logprobs.push(each)
    return { type: 'response.output_text.delta', ...place, delta, logprobs }
  }
  if (part.type === 'refusal' && added.type === 'refusal') {
    part.refusal += added.refusal
    return { type: 'response.refusal.delta', ...place, delta: added.refusal }
  }
  if (part.type === 'reasoning_text' && added.type === 'reasoning_text') {
    part.text += added.text
    return { type: 'response.reasoning_text.delta', ...place, delta: added.text }
  }
  throw new Error(`cannot append ${added.type} to a part of type ${part.type}`)
}

function endPart(part: Part, place: Place): UnnumberedEvent {
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
