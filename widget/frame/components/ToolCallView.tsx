/** Shows a tool call to the visitor: its title, purpose, arguments and status. */

import { useEffect, useId, useRef } from 'react'
import type { ToolCall } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { fill } from '../strings/strings.ts'
import { titleOf } from '../tools/check-tools.ts'
import { parseRecord, renderJson, showUnseen } from './exact-text.ts'
import { ToolIcon } from './icons.tsx'
import { LabelledValues } from './LabelledValues.tsx'

export function ToolCallView({ call }: { call: ToolCall }) {
  const { strings } = useFrame().language
  const name = fill(strings.tool.quoted, { name: isolate(call.title ?? titleOf(undefined, call.name)) })
  if (call.status === 'asking') return <ApprovalCard call={call} name={name} />
  return (
    <details className="tool" data-status={call.status}>
      <summary>
        <ToolIcon />
        <span>{fill(strings.tool[call.status], { name })}</span>
      </summary>
      <div className="tool-body">
        {call.purpose !== undefined && <p dir="auto">{showUnseen(call.purpose)}</p>}
        <LabelledValues values={parseRecord(call.argumentsText)} labels={call.labels} />
        <Outcome result={call.result} />
        <ExactData call={call} />
      </div>
    </details>
  )
}

/**
 * Isolates a name, so that its writing direction does not affect the text around it (Unicode first strong
 * isolate).
 */
function isolate(name: string): string {
  return `\u2068${name}\u2069`
}

function ApprovalCard({ call, name }: { call: ToolCall; name: string }) {
  const { session, language } = useFrame()
  const { tool } = language.strings
  const id = useId()
  const card = useRef<HTMLElement>(null)

  useEffect(() => {
    // Moves the focus to the question, unless the visitor is typing.
    const { activeElement } = document
    const isWriting = activeElement instanceof HTMLTextAreaElement && activeElement.value !== ''
    if (document.hasFocus() && !isWriting) card.current?.focus()
  }, [])

  return (
    <section className="approval" ref={card} tabIndex={-1} aria-labelledby={id}>
      <h3 id={id}>{fill(tool.asking, { name })}</h3>
      <p dir={call.purpose === undefined ? undefined : 'auto'}>
        {call.purpose === undefined ? fill(tool.question, { name }) : showUnseen(call.purpose)}
      </p>
      <LabelledValues values={parseRecord(call.argumentsText)} labels={call.labels} />
      <ExactData call={call} />
      <div className="buttons">
        <button type="button" className="button" onClick={() => session.decide(call.id, 'deny')}>
          {tool.deny}
        </button>
        <button type="button" className="button" onClick={() => session.decide(call.id, 'always')}>
          {tool.allowAlways}
        </button>
        <button type="button" className="button primary" onClick={() => session.decide(call.id, 'once')}>
          {tool.allowOnce}
        </button>
      </div>
    </section>
  )
}

/** Shows the result as text or as labelled values. */
function Outcome({ result }: { result: string | undefined }) {
  const { tool } = useFrame().language.strings
  if (result === undefined || result === '') return null
  const values = parseRecord(result)
  return (
    <div className="outcome">
      <h3>{tool.result}</h3>
      {values === undefined ? (
        <p className="outcome-text" dir="auto">
          {showUnseen(result)}
        </p>
      ) : (
        <LabelledValues values={values} labels={undefined} />
      )}
    </div>
  )
}

/** Shows the complete arguments and result when the visitor expands them. */
function ExactData({ call: { argumentsText, result } }: { call: ToolCall }) {
  const { tool } = useFrame().language.strings
  return (
    <details className="exact">
      <summary>{tool.exact}</summary>
      <ExactText label={tool.arguments} text={renderJson(argumentsText)} />
      {result !== undefined && <ExactText label={tool.result} text={renderJson(result)} />}
    </details>
  )
}

/** Shows text unchanged and left to right, never as Markdown. */
function ExactText({ label, text }: { label: string; text: string }) {
  return (
    <>
      <h3>{label}</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <section className="exact-text" dir="ltr" tabIndex={0} aria-label={label}>
        {text}
      </section>
    </>
  )
}
