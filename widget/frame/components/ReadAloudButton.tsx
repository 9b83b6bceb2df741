/** Shows a button that reads an answer aloud. */
import { useEffect, useRef, useState } from 'react'
import { useFrame } from '../frame-context.ts'
import { readAloud } from '../speech/reading.ts'
import { Action } from './ActionButton.tsx'
import { SpeakerIcon } from './icons.tsx'
import { toSpoken } from './sentences.ts'

export function ReadAloudButton({ text }: { text: string }) {
  const { tag, strings } = useFrame().language
  const [isReading, setIsReading] = useState(false)
  const stop = useRef<() => void>(undefined)
  useEffect(() => () => stop.current?.(), [])

  function toggle(): void {
    if (isReading) {
      stop.current?.()
      return
    }
    setIsReading(true)
    stop.current = readAloud(toSpoken(text), tag, () => setIsReading(false))
  }

  const name = isReading ? strings.stopReading : strings.readAloud
  return <Action name={name} icon={<SpeakerIcon />} act={toggle} isPressed={isReading} />
}
