/** Reports headers and tools that the widget cannot use, before the frame has loaded. */
import { checkHeaders } from '../check-headers.ts'
import { checkTools } from '../frame/tools/check-tools.ts'
import type { HostWidget } from '../host/extras.ts'
import { listTools } from './page-tools.ts'
import { renderTool } from './tool-server.ts'

/** The problems that were reported, by frame. The frame checks again when it loads, so it finds them twice. */
const reported = new WeakMap<object, Set<string>>()

/** Reports each problem once. */
export function checkOptions(widget: HostWidget): void {
  const { options, address, frame } = widget
  const known = reported.get(frame) ?? new Set()
  reported.set(frame, known)
  const { problems } = checkHeaders(options, new URL(address).origin)
  const offered = [...listTools(widget)].map(renderTool)
  for (const problem of [...problems, ...checkTools(offered).problems]) {
    if (known.has(problem)) continue
    known.add(problem)
    widget.report('invalid_option', problem)
  }
}

/** Returns whether the page already knows this problem, which the frame has also found. */
export function wasReported({ frame }: HostWidget, code: string, message: string): boolean {
  return code === 'invalid_option' && reported.get(frame)?.has(message) === true
}
