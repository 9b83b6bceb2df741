/** Makes text of what tools return, no longer than a model should read. */
import type { ToolAnswer } from './tool.ts'

/** Security: 2.5 (tool result, server-run). */
const MOST_BYTES = 64 * 1024

/** What a host's tool returned, for the model: text as it is, nothing as nothing, everything else as JSON. */
export function toAnswer(name: string, value: unknown): ToolAnswer {
  if (value === undefined) return { text: '' }
  if (typeof value === 'string') return { text: value }
  const text = toJson(value)
  return text === undefined ? { problem: `the tool '${name}' returned what JSON cannot hold` } : { text }
}

function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}

/** The text, cut between two characters with a note that says so when it is longer than 64 KiB. */
export function capText(text: string): string {
  const wellFormed = text.toWellFormed()
  const sizeBytes = Buffer.byteLength(wellFormed)
  if (sizeBytes <= MOST_BYTES) return wellFormed
  const note = `\n[The result was cut off: it has ${sizeBytes} bytes, of which only the beginning is shown.]`
  const bytes = Buffer.from(wellFormed).subarray(0, MOST_BYTES - Buffer.byteLength(note))
  return bytes.subarray(0, lastBoundary(bytes)).toString() + note
}

/** Where the last whole character ends: a longer one may have been cut. */
function lastBoundary(bytes: Buffer): number {
  let start = bytes.length - 1
  while (start > 0 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1
  const first = bytes[start] ?? 0
  const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4
  return start + length === bytes.length ? bytes.length : start
}
