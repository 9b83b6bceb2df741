/** Checks that a provider's embedding list matches the request, and normalizes a list that does not. */
import { depthOf, isJsonObject, type JsonObject, parseJson, toCount } from '../lib/formats/json.ts'
import { BackendFailure } from '../providers/provider.ts'
import { encodeVector } from '../providers/render-answer.ts'
import { type Encoding, readOutline } from './outline.ts'
import type { EmbeddingsUsage } from './schema.ts'

const MAX_DEPTH = 64

interface WantedList {
  readonly count: number
  readonly encoding: Encoding
  readonly model: string
}

export interface EmbeddedList {
  readonly pieces: readonly Uint8Array[]
  readonly tokens: number | undefined
}

/**
 * Returns the provider's bytes, normalized if necessary.
 * @throws BackendFailure `protocol` if they are not a list with one vector per input.
 */
export function toWantedList(pieces: readonly Uint8Array[], wanted: WantedList): EmbeddedList {
  const outline = readOutline(pieces, wanted.encoding)
  if (isWhole(outline, wanted)) return { pieces, tokens: outline.usage.prompt_tokens }
  const sent = parseList(Buffer.concat(pieces))
  const normalized = Buffer.from(JSON.stringify(normalizeList(sent, wanted)))
  const usage = isJsonObject(sent.usage) ? sent.usage : {}
  return {
    pieces: [normalized],
    tokens: countIn(usage, usage.prompt_tokens == null ? 'total_tokens' : 'prompt_tokens'),
  }
}

function isWhole(
  outline: unknown,
  { count, encoding }: WantedList,
): outline is { usage: { prompt_tokens: number } } {
  if (!isJsonObject(outline) || outline.object !== 'list' || typeof outline.model !== 'string') return false
  const { data, usage } = outline
  return (
    isJsonObject(usage) &&
    countIn(usage, 'prompt_tokens') !== undefined &&
    countIn(usage, 'total_tokens') !== undefined &&
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

function normalizeList(sent: JsonObject, { count, encoding, model }: WantedList): JsonObject {
  const { data } = sent
  if (!Array.isArray(data) || !data.every(isJsonObject)) throw invalid('data is not a list of objects')
  if (data.length !== count) throw invalid(`${data.length} vectors for ${count} inputs`)
  const isNumbered = data.every(({ index }) => Number.isInteger(index))
  if (isNumbered && new Set(data.map(({ index }) => index)).size !== count)
    throw invalid('several vectors have the same index')
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

function toUsage(sent: JsonObject): EmbeddingsUsage {
  const prompt_tokens = countIn(sent, 'prompt_tokens') ?? 0
  return { ...sent, prompt_tokens, total_tokens: countIn(sent, 'total_tokens') || prompt_tokens }
}

function countIn(usage: JsonObject, field: string): number | undefined {
  return toCount(usage[field], 0)
}

function toEncoding(sent: unknown, encoding: Encoding): number[] | string {
  const numbers = typeof sent === 'string' ? decodeVector(sent) : sent
  if (!Array.isArray(numbers) || !numbers.every(Number.isFinite))
    throw invalid('a vector is not a list of numbers')
  return encoding === 'float' ? numbers : encodeVector(numbers)
}

function decodeVector(text: string): number[] | undefined {
  const encoded = Buffer.from(text, 'base64')
  // Encodes the result again, because decoding ignores characters that are not Base64.
  if (encoded.length % 4 !== 0 || encoded.toString('base64') !== text) return undefined
  return Array.from({ length: encoded.length / 4 }, (_, place) => encoded.readFloatLE(4 * place))
}

function parseList(bytes: Buffer): JsonObject {
  // Limits the depth, because rendering the list is recursive.
  if (depthOf(bytes) > MAX_DEPTH) throw invalid(`the response has more than ${MAX_DEPTH} levels of nesting`)
  const value = parseJson(bytes.toString('utf8'))
  if (!isJsonObject(value)) throw invalid('the response is not a JSON object')
  return value
}

function invalid(message: string): BackendFailure {
  return new BackendFailure('protocol', message)
}
