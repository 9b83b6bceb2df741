/** Hands streamed text on in larger pieces: what is shown is parsed again each time. Security: 2.11 (every 100 ms at most). */

const PACE_MS = 100

export interface TextPacer {
  readonly add: (text: string) => void
  /** Hands on what is left; nothing comes after it. */
  readonly end: () => void
  readonly hasText: () => boolean
}

/** The first text goes on at once, what follows at most every 100 ms. */
export function createTextPacer(hand: (text: string) => void): TextPacer {
  let waiting = ''
  let hasText = false
  let timer: ReturnType<typeof setTimeout> | undefined

  function flush(): void {
    if (waiting === '') {
      timer = undefined
      return
    }
    const text = waiting
    waiting = ''
    timer = setTimeout(flush, PACE_MS)
    hand(text)
  }

  return {
    add(text) {
      if (text === '') return
      hasText = true
      waiting += text
      if (timer === undefined) flush()
    },
    end() {
      clearTimeout(timer)
      if (waiting !== '') hand(waiting)
      waiting = ''
    },
    hasText: () => hasText,
  }
}
