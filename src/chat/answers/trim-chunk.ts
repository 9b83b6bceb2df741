/** Shortens the chunk in which an answer reaches its limit. */
import { isJsonObject } from '../../lib/formats/json.ts'

const textFields: ReadonlySet<string> = new Set(['content', 'reasoning_content', 'reasoning', 'refusal'])

/**
 * Removes up to `excess` bytes from the end of a chunk's text. Returns undefined if the chunk has anything but
 * one text.
 */
export function trimChunk(chunk: unknown, excess: number): object | undefined {
  if (!isJsonObject(chunk) || !Array.isArray(chunk.choices) || chunk.choices.length !== 1) return undefined
  const [choice] = chunk.choices
  if (!isJsonObject(choice) || !isJsonObject(choice.delta)) return undefined
  const { delta } = choice
  const [field, ...others] = Object.keys(delta).filter((name) => name !== 'role' && delta[name] != null)
  const text = field === undefined ? undefined : delta[field]
  if (field === undefined || others.length > 0 || !textFields.has(field) || typeof text !== 'string')
    return undefined
  const trimmed = { ...delta, [field]: keepBytes(text, Buffer.byteLength(text) - excess) }
  return { ...chunk, choices: [{ ...choice, delta: trimmed, finish_reason: null }] }
}

/** Returns the start of a text with at most `most` bytes; does not divide characters. */
function keepBytes(text: string, most: number): string {
  if (most <= 0) return ''
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(most))
  return text.slice(0, read)
}
