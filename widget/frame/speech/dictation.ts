/** Converts the visitor's speech to text with the browser's own speech recognition. */

/** The parts of the Web Speech API that dictation uses; TypeScript does not declare them. */
interface Recognition {
  lang: string
  continuous: boolean
  interimResults: boolean
  onresult:
    | ((event: { readonly results: ArrayLike<ArrayLike<{ readonly transcript: string }>> }) => void)
    | null
  onerror: ((event: { readonly error: string }) => void) | null
  onend: (() => void) | null
  start(): void
  stop(): void
}

type RecognitionClass = new () => Recognition

function findRecognition(): RecognitionClass | undefined {
  const names = globalThis as {
    SpeechRecognition?: RecognitionClass
    webkitSpeechRecognition?: RecognitionClass
  }
  return names.SpeechRecognition ?? names.webkitSpeechRecognition
}

export function canDictate(): boolean {
  return findRecognition() !== undefined
}

export interface Dictation {
  readonly stop: () => void
}

interface Events {
  /** Receives the whole text so far, which can still change. */
  readonly onText: (text: string) => void
  /** Called once; `hasFailed` if the browser cannot use the microphone or its recognition. */
  readonly onEnd: (hasFailed: boolean) => void
}

/** Error codes that are not failures, because the visitor was silent or stopped the dictation. */
const harmless: ReadonlySet<string> = new Set(['no-speech', 'aborted'])

/** Starts to listen in the language with this BCP 47 tag. */
export function startDictation(language: string, { onText, onEnd }: Events): Dictation {
  const Recognizer = findRecognition()
  if (Recognizer === undefined) {
    onEnd(true)
    return { stop: () => {} }
  }
  const recognition = new Recognizer()
  let hasFailed = false
  recognition.lang = language
  recognition.continuous = true
  recognition.interimResults = true
  recognition.onresult = ({ results }) => {
    const parts = Array.from(results, (result) => result[0]?.transcript ?? '')
    onText(parts.join('').trim())
  }
  recognition.onerror = ({ error }) => {
    hasFailed ||= !harmless.has(error)
  }
  recognition.onend = () => onEnd(hasFailed)
  recognition.start()
  return { stop: () => recognition.stop() }
}
