/** Reads text aloud with the browser's own voices. */

export function canReadAloud(): boolean {
  return 'speechSynthesis' in globalThis
}

/** Ends the current reading; called before another one starts. */
let endCurrent: (() => void) | undefined

/**
 * Reads the text in the language with this BCP 47 tag, and calls `onEnd` once when it has ended. Returns a
 * function that stops it.
 */
export function readAloud(text: string, language: string, onEnd: () => void): () => void {
  endCurrent?.()
  const sentences = splitSentences(text, language)
  let isEnded = false

  function end(): void {
    if (isEnded) return
    isEnded = true
    if (endCurrent === end) endCurrent = undefined
    speechSynthesis.cancel()
    onEnd()
  }

  endCurrent = end
  // Makes each sentence a separate utterance, because some browsers stop an utterance after 15 seconds.
  for (const [index, sentence] of sentences.entries()) {
    const utterance = new SpeechSynthesisUtterance(sentence)
    utterance.lang = language
    utterance.onerror = end
    if (index === sentences.length - 1) utterance.onend = end
    speechSynthesis.speak(utterance)
  }
  if (sentences.length === 0) end()
  return end
}

function splitSentences(text: string, language: string): readonly string[] {
  const segments = new Intl.Segmenter(language, { granularity: 'sentence' }).segment(text)
  return Array.from(segments, ({ segment }) => segment.trim()).filter((sentence) => sentence !== '')
}
