/** Reports headers and tools that the widget cannot use, before the frame has loaded. */
import { checkHeaders } from '../check-headers.ts'
import { checkTools } from '../frame/tools/check-tools.ts'
import type { HostWidget } from '../host/extras.ts'
import { listTools } from './page-tools.ts'
import { renderTool } from './tool-server.ts'

/** Problems already reported, by frame. The frame repeats these checks, so its duplicates are suppressed. */
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

/** Returns whether the frame's error repeats a problem that `checkOptions` has reported. */
export function wasReported({ frame }: HostWidget, code: string, message: string): boolean {
  return code === 'invalid_option' && reported.get(frame)?.has(message) === true
}
