/** Asks the person before the page does something: with exactly what. Decision: 11. */
import { useEffect, useId, useRef } from 'react'
import type { ToolCall } from '../conversation/state.ts'
import { useFrame } from '../frame-context.ts'
import { renderJson } from '../lib/render-json.ts'
import { fill } from '../strings/strings.ts'
import { Exact } from '../view/Exact.tsx'

export function ApprovalCard({ call, name }: { call: ToolCall; name: string }) {
  const { session, language } = useFrame()
  const { tool } = language.strings
  const id = useId()
  const card = useRef<HTMLElement>(null)

  useEffect(() => {
    // Whoever is writing goes on; everybody else is where the question is.
    const { activeElement } = document
    const isWriting = activeElement instanceof HTMLTextAreaElement && activeElement.value !== ''
    if (document.hasFocus() && !isWriting) card.current?.focus()
  }, [])

  return (
    <section className="approval" ref={card} tabIndex={-1} aria-labelledby={id}>
      <h3 id={id}>{fill(tool.asking, { name })}</h3>
      <p>{fill(tool.question, { name })}</p>
      <Exact label={tool.arguments} text={renderJson(call.argumentsText)} isTitled={false} />
      <div className="buttons">
        <button type="button" className="button" onClick={() => session.decide(call.id, false)}>
          {tool.deny}
        </button>
        <button type="button" className="button primary" onClick={() => session.decide(call.id, true)}>
          {tool.approve}
        </button>
      </div>
    </section>
  )
}
