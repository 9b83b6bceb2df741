/** Reads chat API requests and renders chat API responses, for the mock and in-process providers. */
import { isJsonObject, type JsonObject, listObjects } from '../lib/formats/json.ts'

export interface AnswerHead {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly system_fingerprint?: string
}

export const doneEvent = 'data: [DONE]\n\n'

export function renderCompletion(head: AnswerHead, choices: readonly JsonObject[], usage: object): string {
  const { id, ...rest } = head
  return JSON.stringify({ id, object: 'chat.completion', ...rest, choices, usage })
}

export function openEvent({ id, ...rest }: AnswerHead): string {
  const head = JSON.stringify({ id, object: 'chat.completion.chunk', ...rest })
  return `data: ${head.slice(0, -1)},"choices":[`
}

export const eventEnd = ']}\n\n'

export function renderUsageEvent(opening: string, usage: object): string {
  return `${opening}],"usage":${JSON.stringify(usage)}}\n\n`
}

interface EmbeddingsAnswer {
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
      embedding: isBase64 ? encodeVector(vector) : Array.from(vector),
    })),
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  })
}

/** Encodes a vector as base64 of little-endian float32 values. */
export function encodeVector(vector: ArrayLike<number>): string {
  const bytes = Buffer.alloc(4 * vector.length)
  for (let place = 0; place < vector.length; place += 1)
    bytes.writeFloatLE(vector[place] as number, 4 * place)
  return bytes.toString('base64')
}

/** Lists an embeddings request's inputs; an array of numbers is one input of token ids. */
export function listInputs(input: unknown): readonly (string | readonly number[])[] {
  if (!Array.isArray(input)) return [String(input)]
  return typeof input[0] === 'number' ? [input] : input
}

interface ToolChoice {
  readonly mode: 'none' | 'auto' | 'required'
  /** The only tools that may be called; undefined if all may be called. */
  readonly names?: ReadonlySet<unknown>
}

export function parseToolChoice(choice: unknown): ToolChoice | undefined {
  if (choice === undefined || choice === null || choice === 'auto') return { mode: 'auto' }
  if (choice === 'none' || choice === 'required') return { mode: choice }
  if (!isJsonObject(choice)) return undefined
  if (isJsonObject(choice.function)) return { mode: 'required', names: new Set([choice.function.name]) }
  if (!isJsonObject(choice.allowed_tools)) return undefined
  const { mode, tools } = choice.allowed_tools
  const functions = listObjects(tools).flatMap((tool) => listObjects([tool.function]))
  return {
    mode: mode === 'required' ? mode : 'auto',
    names: new Set(functions.map(({ name }) => name)),
  }
}
