/** A call of a tool: what is going on, and on demand what was sent and what came back. */
import type { ToolCall } from '../conversation/state.ts'
import { fill } from '../strings/strings.ts'
import { titleOf } from '../tools/check-tools.ts'
import { ApprovalCard } from './ApprovalCard.tsx'
import { useFrame } from './frame-context.ts'
import { ToolIcon } from './icons.tsx'
import { renderJson } from './render-json.ts'

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

/** Text as it is, from left to right, never as Markdown. */
export function Exact({ label, text, isTitled = true }: { label: string; text: string; isTitled?: boolean }) {
  return (
    <div className="exact">
      {isTitled && <h3>{label}</h3>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled with the keyboard */}
      <section className="exact-text" dir="ltr" tabIndex={0} aria-label={label}>
        {text}
      </section>
    </div>
  )
}

/** A name of the page's own must not turn the words around it. Protocol: Unicode, first strong isolate. */
function isolate(name: string): string {
  return `\u2068${name}\u2069`
}
