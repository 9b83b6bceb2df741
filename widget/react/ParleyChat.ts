/** The component: it renders nothing where it stands, and keeps the one widget of the page as its props say. */
import { useEffect, useRef } from 'react'
import type { WidgetCallbacks } from '../host/events.ts'
import { mountWidget } from '../host/widget.ts'
import type { ParleyChatProps } from './props.ts'

export type { ParleyChatProps } from './props.ts'

import type { Widget } from '../host/page.ts'

type DataProps = Omit<ParleyChatProps, keyof WidgetCallbacks>

/** Only one of them is possible on a page: a second one warns, and there is nothing of it. */
export function ParleyChat(props: ParleyChatProps): null {
  const latest = useRef(props)
  const widget = useRef<Widget | undefined>(undefined)
  const shown = useRef<DataProps>({})
  const { containerId } = props

  useEffect(() => {
    latest.current = props
  })

  useEffect(() => {
    const data = toData(latest.current)
    const mounted = mountWidget({ ...data, containerId, ...followCallbacks(latest) })
    widget.current = mounted
    shown.current = data
    return () => mounted?.destroy()
  }, [containerId])

  useEffect(() => {
    const data = toData(props)
    const changes = listChanges(shown.current, data)
    shown.current = data
    if (Object.keys(changes).length > 0) widget.current?.configure(changes)
  })

  return null
}

function toData({
  onReady: _onReady,
  onOpen: _onOpen,
  onClose: _onClose,
  onInsert: _onInsert,
  onToolCall: _onToolCall,
  onUserShare: _onUserShare,
  onError: _onError,
  ...data
}: ParleyChatProps): DataProps {
  return data
}

/** Callbacks that never change, and call the newest ones. */
function followCallbacks(latest: { readonly current: ParleyChatProps }): Required<WidgetCallbacks> {
  return {
    onReady: () => latest.current.onReady?.(),
    onOpen: () => latest.current.onOpen?.(),
    onClose: () => latest.current.onClose?.(),
    onInsert: (insertion) => latest.current.onInsert?.(insertion),
    onToolCall: (tool, args, sendResult) => latest.current.onToolCall?.(tool, args, sendResult),
    onUserShare: (data) => latest.current.onUserShare?.(data),
    onError: (error) => latest.current.onError?.(error),
  }
}

/** The props that differ; undefined for one that is gone. The context is compared by reference. Contract: `context`. */
function listChanges(before: DataProps, after: DataProps): DataProps {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])] as (keyof DataProps)[]
  const changed = names.filter((name) => !isSame(name, before[name], after[name]))
  return Object.fromEntries(changed.map((name) => [name, after[name]]))
}

/** Lists and records written into the markup are new ones at each rendering, and mostly say the same. */
function isSame(name: keyof DataProps, before: unknown, after: unknown): boolean {
  if (name !== 'tools' && name !== 'headers') return Object.is(before, after)
  return JSON.stringify(before) === JSON.stringify(after)
}
