/** Holds the view of the conversation on the screen, and publishes its entries to the frame's state. */
import type { Store } from '../app-state.ts'
import { createEntryRenderer } from './render-view.ts'
import { emptyView, findAnswering, reduceView, type View, type ViewAction } from './view.ts'

export interface ShownView {
  readonly get: () => View
  readonly apply: (action: ViewAction) => void
  readonly clear: () => void
}

/** Shortest time between two renderings of streamed text, in milliseconds. */
const PACE_MS = 100

/** `onChange` is called before a change is published. */
export function createShownView({ get, dispatch }: Store, onChange: (view: View) => void): ShownView {
  const render = createEntryRenderer()
  let view = emptyView
  let timer: ReturnType<typeof setTimeout> | undefined
  let publishedAtMs = 0

  function publish(): void {
    clearTimeout(timer)
    timer = undefined
    publishedAtMs = Date.now()
    dispatch({ type: 'replaced', entries: render(view) })
    const { answering: before } = get()
    const answering = findAnswering(view)
    if (answering.mode !== before.mode || answering.name !== before.name)
      dispatch({ type: 'answering', answering })
  }

  return {
    get: () => view,
    apply(action) {
      view = reduceView(view, action)
      onChange(view)
      const isText = action.type === 'event' && action.event.event === 'conversation.turn.delta'
      const waitMs = isText ? publishedAtMs + PACE_MS - Date.now() : 0
      if (waitMs <= 0) publish()
      else timer ??= setTimeout(publish, waitMs)
    },
    clear() {
      view = emptyView
      publish()
    },
  }
}
