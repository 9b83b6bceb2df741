/** A call of a tool: what is going on, and on demand what was sent and what came back. */
import type { ToolCall } from '../conversation/state.ts'
import { useFrame } from '../frame-context.ts'
import { ToolIcon } from '../lib/icons.tsx'
import { renderJson } from '../lib/render-json.ts'
import { fill } from '../strings/strings.ts'
import { titleOf } from '../tools/check-tools.ts'
import { Exact } from '../view/Exact.tsx'
import { ApprovalCard } from './ApprovalCard.tsx'

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

/** A name of the page's own must not turn the words around it. Protocol: Unicode, first strong isolate. */
function isolate(name: string): string {
  return `\u2068${name}\u2069`
}
