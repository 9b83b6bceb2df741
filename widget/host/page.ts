/** What all copies of this code on one page share: which widget there is, and who wants to know of its changes. */
import type { Widget } from './widget.ts'

interface SharedPage {
  widget: Widget | undefined
  readonly listeners: Set<() => void>
}

/** The script and the React component may both be on a page; they still have one widget between them. */
const key = Symbol.for('parley.page')

export function sharedPage(): SharedPage {
  const holder = window as unknown as Record<symbol, SharedPage | undefined>
  holder[key] ??= { widget: undefined, listeners: new Set() }
  return holder[key]
}

/** Tells everybody who listens that the widget, or what can be known of it, has changed. */
export function announceChange(): void {
  for (const listener of [...sharedPage().listeners]) listener()
}

/** Calls the listener after every change until the returned function is called. */
export function listenForChanges(listener: () => void): () => void {
  const { listeners } = sharedPage()
  listeners.add(listener)
  return () => void listeners.delete(listener)
}
