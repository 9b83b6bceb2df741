/** Shows a status as a colored dot with a word, so that color is never the only difference. */
import './status.css'
import type { Tone } from './tone.ts'

export type { Tone } from './tone.ts'

export function Status({ tone, children }: { readonly tone: Tone; readonly children: string }) {
  return (
    <span className="status" data-tone={tone}>
      {children}
    </span>
  )
}
