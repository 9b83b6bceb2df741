/** Checks that a backend's embedding list is what was asked for, and mends one that is not. */
import { isJsonObject, type JsonObject } from '../lib/formats/json.ts'
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

/**
 * The list as it was asked for; the same bytes where the backend sent it so. Contract: Embedding (response). Decision: 12.
 * @throws BackendFailure `protocol` when it is none, or has not a vector for each input.
 */
export function toWantedList(pieces: readonly Uint8Array[], wanted: WantedList): EmbeddedList {
  const outline = readOutline(pieces, wanted.encoding)
  if (isWhole(outline, wanted)) return { pieces, tokens: outline.usage.prompt_tokens }
  const sent = parseList(Buffer.concat(pieces))
  const mended = Buffer.from(JSON.stringify(mendList(sent, wanted)))
  const usage = isJsonObject(sent.usage) ? sent.usage : {}
  return { pieces: [mended], tokens: countIn(usage, 'prompt_tokens') ?? countIn(usage, 'total_tokens') }
}

/** What the bytes are forwarded for. */
interface WholeList {
  readonly usage: { readonly prompt_tokens: number }
}

function isWhole(outline: unknown, { count, encoding }: WantedList): outline is WholeList {
  if (!isJsonObject(outline) || outline.object !== 'list' || typeof outline.model !== 'string') return false
  const { data, usage } = outline
  return (
    isJsonObject(usage) &&
    Number.isInteger(usage.prompt_tokens) &&
    Number.isInteger(usage.total_tokens) &&
    Array.isArray(data) &&
    data.length === count &&
    data.every(
      (item, index) =>
        isJsonObject(item) &&
        item.object === 'embedding' &&
        item.index === index &&
        (encoding === 'float' ? Array.isArray(item.embedding) : typeof item.embedding === 'string'),
    )
  )
}

function mendList(sent: JsonObject, { count, encoding, model }: WantedList): JsonObject {
  const { data } = sent
  if (!Array.isArray(data) || !data.every(isJsonObject)) throw nonsense('data is not a list of objects')
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
    usage: toUsage(isJsonObject(sent.usage) ? sent.usage : {}),
  }
}

/** A backend's count, whatever it left out. */
function toUsage(sent: JsonObject): EmbeddingsUsage {
  const prompt_tokens = countIn(sent, 'prompt_tokens') ?? 0
  return { ...sent, prompt_tokens, total_tokens: countIn(sent, 'total_tokens') || prompt_tokens }
}

function countIn(usage: JsonObject, field: string): number | undefined {
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

function parseList(bytes: Buffer): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch (cause) {
    throw nonsense('the answer is not JSON', cause)
  }
  if (!isJsonObject(value)) throw nonsense('the answer is not an object')
  return value
}

function nonsense(message: string, cause?: unknown): BackendFailure {
  return new BackendFailure('protocol', message, { cause })
}
