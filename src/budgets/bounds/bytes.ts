/** Counts the bytes of a text as an upper bound on its tokens, without blocking other requests. */
import { setImmediate } from 'node:timers/promises'

/**
 * Characters that are normalized together. Normalization sorts combining marks, which takes quadratic time: a
 * mebibyte of marks in one piece would block the process for minutes.
 */
const PIECE_LENGTH = 512
/** Bytes by which normalization in two pieces can be shorter than in one, because it composes characters. */
const BYTES_BETWEEN_PIECES = 8
/** Number of pieces after which other requests run. */
const PIECES_BEFORE_PAUSE = 64

/**
 * Counts bytes, because a token covers at least one byte. Some tokenizers normalize text to NFKC first, which
 * can make it longer.
 */
export async function countBytes(
  text: string,
  pause: () => Promise<unknown> = () => setImmediate(),
): Promise<number> {
  const bytes = Buffer.byteLength(text)
  // ASCII does not change.
  if (bytes === text.length) return bytes
  let normalized = 0
  let pieces = 0
  for (let at = 0; at < text.length; pieces++) {
    if (pieces > 0) {
      normalized += BYTES_BETWEEN_PIECES
      if (pieces % PIECES_BEFORE_PAUSE === 0) await pause()
    }
    const end = endOfPiece(text, at)
    normalized += Buffer.byteLength(text.slice(at, end).normalize('NFKC'))
    at = end
  }
  return Math.max(bytes, normalized)
}

/** Does not divide a surrogate pair. */
function endOfPiece(text: string, start: number): number {
  const end = Math.min(start + PIECE_LENGTH, text.length)
  const isPair = end < text.length && /[\uD800-\uDBFF]/.test(text.charAt(end - 1))
  return isPair ? end + 1 : end
}
