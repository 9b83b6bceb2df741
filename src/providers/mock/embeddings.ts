/**
 * Makes the mock provider's embeddings: unit vectors that are close if their texts share words or letters.
 */
import type { JsonObject } from '../../lib/formats/json.ts'
import { callersMistake } from '../failures.ts'
import { listInputs, renderEmbeddings } from '../render-answer.ts'
import { countWords } from './words.ts'

const defaultWidth = 1536
const maxWidth = 3072

const [wordWeight, pairWeight, lettersWeight] = [1, 0.5, 0.4]

/**
 * Returns an embedding list as JSON, counting each word as a token. @throws BackendFailure status 400 for too
 * many dimensions.
 */
export function makeEmbeddings(body: JsonObject): string {
  const width = typeof body.dimensions === 'number' ? body.dimensions : defaultWidth
  if (width > maxWidth) throw callersMistake('dimensions', `must be at most ${maxWidth}`)
  const inputs = listInputs(body.input)
  return renderEmbeddings({
    vectors: inputs.map((input) => makeVector(input, width)),
    model: typeof body.model === 'string' ? body.model : 'mock-embedding',
    tokens: inputs.reduce<number>((sum, input) => sum + countTokens(input), 0),
    isBase64: body.encoding_format === 'base64',
  })
}

type Input = string | readonly number[]

function countTokens(input: Input): number {
  return typeof input === 'string' ? Math.max(1, countWords(input)) : input.length
}

function makeVector(input: Input, width: number): Float32Array {
  const sum = new Float64Array(width)
  const add = (hash: number, weight: number) => {
    const place = hash % width
    sum[place] = (sum[place] as number) + (hash & 0x80000000 ? -weight : weight)
  }
  addFeatures(input, add)
  // The vector is zero if the text has no features or if they cancel each other out.
  if (!sum.some((value) => value !== 0)) sum[hashText(String(input)) % width] = 1
  const length = Math.hypot(...sum)
  return Float32Array.from(sum, (value) => value / length)
}

function addFeatures(input: Input, add: (hash: number, weight: number) => void): void {
  const words =
    typeof input === 'string'
      ? (input
          .normalize('NFKC')
          .toLowerCase()
          .match(/[\p{L}\p{N}]+/gu) ?? [])
      : input.map((token) => `#${token}`)
  let before = 0
  for (const word of words) {
    const hash = hashText(word)
    add(hash, wordWeight)
    if (before !== 0) add(mix(before, hash), pairWeight)
    before = hash
    if (typeof input !== 'string') continue
    const padded = ` ${word} `
    for (let at = 3; at <= padded.length; at++) add(hashText(padded, at - 3, at), lettersWeight)
  }
}

/** Hashes part of a text's UTF-16 units with FNV-1a and a final mix. */
function hashText(text: string, from = 0, to = text.length): number {
  let hash = 0x811c9dc5
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return mix(hash, to - from)
}

function mix(one: number, other: number): number {
  let hash = Math.imul(one ^ Math.imul(other, 0x9e3779b1), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35)
  return (hash ^ (hash >>> 13)) >>> 0
}
