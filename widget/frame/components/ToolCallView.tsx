/** Shows a tool call's status, with its arguments and result on demand. */

import { useEffect, useId, useRef } from 'react'
import type { ToolCall } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { fill } from '../strings/strings.ts'
import { titleOf } from '../tools/check-tools.ts'
import { ToolIcon } from './icons.tsx'

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
      <Exact label={strings.tool.arguments} text={renderJson(call.argumentsText)} />
      {call.result !== undefined && <Exact label={strings.tool.result} text={renderJson(call.result)} />}
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

/** Shows text unchanged and left to right, never as Markdown. */
function Exact({ label, text, isTitled = true }: { label: string; text: string; isTitled?: boolean }) {
  return (
    <div className="exact">
      {isTitled && <h3>{label}</h3>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <section className="exact-text" dir="ltr" tabIndex={0} aria-label={label}>
        {text}
      </section>
    </div>
  )
}

/** Indents JSON and escapes invisible and bidirectional control characters; leaves other text unchanged. */
function renderJson(text: string): string {
  try {
    return showUnseen(JSON.stringify(JSON.parse(text === '' ? '{}' : text), null, 2))
  } catch {
    return showUnseen(text)
  }
}

function showUnseen(text: string): string {
  return text.replaceAll(
    /[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
