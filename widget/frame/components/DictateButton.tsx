/** Shows a button that dictates the visitor's speech into the input. */
import { useEffect, useRef, useState } from 'react'
import { useFrame } from '../frame-context.ts'
import { type Dictation, startDictation } from '../speech/dictation.ts'
import { MicIcon } from './icons.tsx'

interface Props {
  readonly text: string
  readonly onText: (text: string) => void
  readonly onFailure: (hasFailed: boolean) => void
}

export function DictateButton({ text, onText, onFailure }: Props) {
  const { tag, strings } = useFrame().language
  const [isListening, setIsListening] = useState(false)
  const dictation = useRef<Dictation>(undefined)
  useEffect(() => () => dictation.current?.stop(), [])

  function toggle(): void {
    if (isListening) {
      dictation.current?.stop()
      return
    }
    const before = text.trim() === '' ? '' : `${text.trimEnd()} `
    onFailure(false)
    setIsListening(true)
    dictation.current = startDictation(tag, {
      onText: (said) => onText(before + said),
      onEnd(hasFailed) {
        setIsListening(false)
        onFailure(hasFailed)
      },
    })
  }

  const name = isListening ? strings.stopDictation : strings.dictate
  return (
    <button
      type="button"
      className="action dictate"
      title={name}
      aria-label={name}
      aria-pressed={isListening}
      onClick={toggle}
    >
      <MicIcon />
    </button>
  )
}
