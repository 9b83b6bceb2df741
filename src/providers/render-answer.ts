/** Renders answers in the chat API's format, for the mock and in-process providers. */

type Fields = Readonly<Record<string, unknown>>

/** The names of an answer, in their order in JSON. */
export interface AnswerHead {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly system_fingerprint?: string
}

export const doneEvent = 'data: [DONE]\n\n'

export function renderCompletion(head: AnswerHead, choices: readonly Fields[], usage: object): string {
  const { id, ...rest } = head
  return JSON.stringify({ id, object: 'chat.completion', ...rest, choices, usage })
}

/** The beginning of every event of an answer, up to its choices. */
export function openEvent({ id, ...rest }: AnswerHead): string {
  const head = JSON.stringify({ id, object: 'chat.completion.chunk', ...rest })
  return `data: ${head.slice(0, -1)},"choices":[`
}

export const eventEnd = ']}\n\n'

export function renderUsageEvent(opening: string, usage: object): string {
  return `${opening}],"usage":${JSON.stringify(usage)}}\n\n`
}

export interface EmbeddingsAnswer {
  readonly vectors: readonly Float32Array[]
  readonly model: string
  readonly tokens: number
  readonly isBase64: boolean
}

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

function encode(vector: Float32Array): string {
  const bytes = Buffer.alloc(4 * vector.length)
  for (const [place, value] of vector.entries()) bytes.writeFloatLE(value, 4 * place)
  return bytes.toString('base64')
}

/** The inputs of an embeddings request; an array of numbers is one text in tokens. */
export function listInputs(input: unknown): readonly (string | readonly number[])[] {
  if (!Array.isArray(input)) return [String(input)]
  return typeof input[0] === 'number' ? [input] : input
}
