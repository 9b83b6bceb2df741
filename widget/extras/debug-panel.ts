/** Shows the widget's events on local pages while the option `debug` is set. */
import type { HostWidget } from '../host/extras.ts'
import { addStyles } from './styles.ts'

const MAX_LINES = 50
const names = [
  'ready',
  'opened',
  'closed',
  'unread',
  'message',
  'insert',
  'tool-call',
  'user-share',
  'error',
] as const

/** Lists event names and error codes, but never keys, context or text. */
export function showDebugPanel({ layout, on, ended }: HostWidget): void {
  addStyles(layout)
  const panel = document.createElement('details')
  panel.className = 'debug'
  const summary = document.createElement('summary')
  summary.textContent = 'Parley debug'
  const list = document.createElement('ol')
  panel.append(summary, list)
  layout.append(panel)
  const stops = names.map((name) => on(name, (detail) => add(list, renderEvent(name, detail))))
  ended.signal.addEventListener('abort', () => {
    for (const stop of stops) stop()
    panel.remove()
  })
}

function renderEvent(name: string, detail: unknown): string {
  const { code, reason, status, requestId, count, role, tool } = (detail ?? {}) as Record<string, unknown>
  const fields = { code, reason, status, requestId, count, role, tool }
  const known = Object.entries(fields).filter(([, value]) => value !== undefined)
  return [name, ...known.map(([field, value]) => `${field}=${value}`)].join(' ')
}

function add(list: HTMLElement, text: string): void {
  const line = document.createElement('li')
  line.textContent = `${new Date().toLocaleTimeString()} ${text}`
  list.append(line)
  if (list.childElementCount > MAX_LINES) list.firstElementChild?.remove()
}
