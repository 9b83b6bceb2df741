/** Draws attention to unread messages with a sound and a number in the page's title. */
import type { HostWidget } from '../host/extras.ts'

interface Attention {
  readonly sound: boolean | undefined
  readonly titleBadge: boolean | undefined
}

export function watchAttention({ on, ended }: HostWidget, { sound, titleBadge }: Attention): void {
  let count = 0
  const stop = on('unread', (detail) => {
    const before = count
    count = (detail as { readonly count: number }).count
    if (sound && count > before) playTone()
    if (titleBadge) document.title = withCount(document.title, count)
  })
  ended.signal.addEventListener('abort', () => {
    stop()
    if (titleBadge) document.title = withCount(document.title, 0)
  })
}

/** Replaces the number at the start of a title; keeps changes that the page has made to the rest. */
export function withCount(title: string, count: number): string {
  const plain = title.replace(/^\(\d+\) /, '')
  return count === 0 ? plain : `(${count}) ${plain}`
}

const TONE_SECONDS = 0.18

/** Plays a short tone. Browsers block it until the visitor has interacted with the page. */
function playTone(): void {
  const audio = new AudioContext()
  const tone = audio.createOscillator()
  const volume = audio.createGain()
  tone.frequency.value = 880
  volume.gain.setValueAtTime(0.08, audio.currentTime)
  volume.gain.exponentialRampToValueAtTime(0.001, audio.currentTime + TONE_SECONDS)
  tone.connect(volume).connect(audio.destination)
  tone.onended = () => void audio.close()
  tone.start()
  tone.stop(audio.currentTime + TONE_SECONDS)
}
