/** The chat API's own format, for backends that write it themselves: whole answers, events, lists of vectors. */

type Fields = Readonly<Record<string, unknown>>

/** What an answer is called, in its order on the wire. */
export interface AnswerHead {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  readonly model: string
  readonly system_fingerprint?: string
}

/** The last event of a stream. Protocol: chat API, streaming. */
export const doneEvent = 'data: [DONE]\n\n'

/** A whole `chat.completion`. Contract: Chat completion (response). */
export function renderCompletion(head: AnswerHead, choices: readonly Fields[], usage: object): string {
  const { id, ...rest } = head
  return JSON.stringify({ id, object: 'chat.completion', ...rest, choices, usage })
}

/** How every event of an answer begins, up to its choices: written once, as a stream of many thousand events repeats it in each. */
export function openEvent({ id, ...rest }: AnswerHead): string {
  const head = JSON.stringify({ id, object: 'chat.completion.chunk', ...rest })
  return `data: ${head.slice(0, -1)},"choices":[`
}

/** How an event with one choice ends. */
export const eventEnd = ']}\n\n'

/** The event of an answer's usage, which has no choice. Decision: 12. */
export function renderUsageEvent(opening: string, usage: object): string {
  return `${opening}],"usage":${JSON.stringify(usage)}}\n\n`
}

/** What a list of vectors answers. */
export interface EmbeddingsAnswer {
  readonly vectors: readonly Float32Array[]
  readonly model: string
  /** Of all inputs. */
  readonly tokens: number
  readonly isBase64: boolean
}

/** A whole list of vectors. Contract: Embedding (response). Decision: 8. */
export function renderEmbeddings({ vectors, model, tokens, isBase64 }: EmbeddingsAnswer): string {
  return JSON.stringify({
    object: 'list',
    data: vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: isBase64 ? encode(vector) : Array.from(vector),
    })),
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  })
}

/** Little-endian float32. Decision: 8. */
function encode(vector: Float32Array): string {
  const bytes = Buffer.alloc(4 * vector.length)
  for (const [place, value] of vector.entries()) bytes.writeFloatLE(value, 4 * place)
  return bytes.toString('base64')
}

/** The inputs of an embeddings request; an array of numbers is one text in tokens. Contract: Embeddings. */
export function listInputs(input: unknown): readonly (string | readonly number[])[] {
  if (!Array.isArray(input)) return [String(input)]
  return typeof input[0] === 'number' ? [input] : input
}
