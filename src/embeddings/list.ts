/** Checks that a backend's embedding list is what was asked for, and mends one that is not. */
import { BackendFailure } from '../providers/provider.ts'
import { type Encoding, readOutline } from './outline.ts'
import type { EmbeddingsUsage } from './schema.ts'

/** What was asked for. */
export interface WantedList {
  /** How many vectors. */
  readonly count: number
  readonly encoding: Encoding
  /** Named where the backend does not say which model answered. */
  readonly model: string
}

/** A list as the caller gets it. */
export interface EmbeddedList {
  readonly pieces: readonly Uint8Array[]
  /** What the inputs took, where the backend has counted. */
  readonly tokens: number | undefined
}

type Fields = Readonly<Record<string, unknown>>

/**
 * The list as it was asked for; the same bytes where the backend sent it so. Contract: Embedding (response). Decision: 12.
 * @throws BackendFailure `protocol` when it is none, or has not a vector for each input.
 */
export function toWantedList(pieces: readonly Uint8Array[], wanted: WantedList): EmbeddedList {
  const outline = readOutline(pieces, wanted.encoding)
  if (isWhole(outline, wanted)) return { pieces, tokens: outline.usage.prompt_tokens }
  const sent = parseList(Buffer.concat(pieces))
  const mended = Buffer.from(JSON.stringify(mendList(sent, wanted)))
  const usage = isFields(sent.usage) ? sent.usage : {}
  return { pieces: [mended], tokens: countIn(usage, 'prompt_tokens') ?? countIn(usage, 'total_tokens') }
}

/** What the bytes are forwarded for. */
interface WholeList {
  readonly usage: { readonly prompt_tokens: number }
}

function isWhole(outline: unknown, { count, encoding }: WantedList): outline is WholeList {
  if (!isFields(outline) || outline.object !== 'list' || typeof outline.model !== 'string') return false
  const { data, usage } = outline
  return (
    isFields(usage) &&
    Number.isInteger(usage.prompt_tokens) &&
    Number.isInteger(usage.total_tokens) &&
    Array.isArray(data) &&
    data.length === count &&
    data.every(
      (item, index) =>
        isFields(item) &&
        item.object === 'embedding' &&
        item.index === index &&
        (encoding === 'float' ? Array.isArray(item.embedding) : typeof item.embedding === 'string'),
    )
  )
}

function mendList(sent: Fields, { count, encoding, model }: WantedList): Fields {
  const { data } = sent
  if (!Array.isArray(data) || !data.every(isFields)) throw nonsense('data is not a list of objects')
  if (data.length !== count) throw nonsense(`${data.length} vectors for ${count} inputs`)
  const isNumbered = data.every(({ index }) => Number.isInteger(index))
  const ordered = isNumbered ? data.toSorted((a, b) => Number(a.index) - Number(b.index)) : data
  return {
    ...sent,
    object: 'list',
    data: ordered.map((item, index) => ({
      ...item,
      object: 'embedding',
      index,
      embedding: toEncoding(item.embedding, encoding),
    })),
    model: typeof sent.model === 'string' ? sent.model : model,
    usage: toUsage(isFields(sent.usage) ? sent.usage : {}),
  }
}

/** A backend's count, whatever it left out. */
function toUsage(sent: Fields): EmbeddingsUsage {
  const prompt_tokens = countIn(sent, 'prompt_tokens') ?? 0
  return { ...sent, prompt_tokens, total_tokens: countIn(sent, 'total_tokens') || prompt_tokens }
}

function countIn(usage: Fields, field: string): number | undefined {
  return Number.isSafeInteger(usage[field]) ? (usage[field] as number) : undefined
}

/** A vector in the encoding asked for. Decision: 8 (little-endian float32). */
function toEncoding(sent: unknown, encoding: Encoding): number[] | string {
  const numbers = typeof sent === 'string' ? decodeVector(sent) : sent
  if (!Array.isArray(numbers) || !numbers.every(Number.isFinite)) throw nonsense('a vector is none')
  if (encoding === 'float') return numbers
  const encoded = Buffer.alloc(4 * numbers.length)
  for (const [place, number] of numbers.entries()) encoded.writeFloatLE(number, 4 * place)
  return encoded.toString('base64')
}

function decodeVector(text: string): number[] | undefined {
  const encoded = Buffer.from(text, 'base64')
  // What is no base64 is skipped in decoding.
  if (encoded.length % 4 !== 0 || encoded.toString('base64') !== text) return undefined
  return Array.from({ length: encoded.length / 4 }, (_, place) => encoded.readFloatLE(4 * place))
}

function parseList(bytes: Buffer): Fields {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch (cause) {
    throw nonsense('the answer is not JSON', cause)
  }
  if (!isFields(value)) throw nonsense('the answer is not an object')
  return value
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function nonsense(message: string, cause?: unknown): BackendFailure {
  return new BackendFailure('protocol', message, { cause })
}
