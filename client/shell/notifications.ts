/** Shows desktop notifications of waiting visitors if the user has turned them on in this browser. */
import { useSyncExternalStore } from 'react'
import { t } from '../strings/language.ts'

/** Its value is a `NotificationState`, `on` or `unsupported`, or missing. */
const STORAGE_KEY = 'parley-notifications'
const listeners = new Set<() => void>()

/**
 * `off` if the user has not turned them on, `blocked` if the browser forbids them, `unsupported` if it cannot
 * show them, like Chrome on Android, where only service workers may show notifications.
 */
export type NotificationState = 'on' | 'off' | 'blocked' | 'unsupported'

export function useNotifications() {
  const state = useSyncExternalStore(subscribe, readState)
  const toggle = async () => {
    const isOn = state === 'on'
    // Checked before the user is asked, because with the permission the check would show a notification.
    if (!isOn && Notification.permission === 'default' && tryShow('') === undefined) return readState()
    if (!isOn && Notification.permission === 'default') await Notification.requestPermission()
    store(isOn || Notification.permission !== 'granted' ? undefined : 'on')
    return readState()
  }
  return { state, toggle }
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

function store(state: 'on' | 'unsupported' | undefined): void {
  if (state === undefined) localStorage.removeItem(STORAGE_KEY)
  else localStorage.setItem(STORAGE_KEY, state)
  for (const listener of listeners) listener()
}

function readState(): NotificationState {
  if (!('Notification' in window)) return 'unsupported'
  try {
    const stored = localStorage.getItem(STORAGE_KEY)
    if (stored === 'unsupported') return 'unsupported'
    if (Notification.permission === 'denied') return 'blocked'
    return Notification.permission === 'granted' && stored === 'on' ? 'on' : 'off'
  } catch {
    return 'unsupported'
  }
}

/** Shows a notification; returns undefined and notes it if the browser cannot show any. */
function tryShow(title: string, options?: NotificationOptions): Notification | undefined {
  try {
    return new Notification(title, options)
  } catch {
    store('unsupported')
    return undefined
  }
}

interface WaitingList {
  readonly conversations: readonly { readonly id: string; readonly title: string | null }[]
  readonly mine: readonly {
    readonly id: string
    readonly title: string | null
    readonly answer_due: number
  }[]
}

/**
 * Shows a notification for each conversation that has begun to wait, and for each in which the visitor has
 * replied to the user.
 */
export function notify(before: WaitingList, now: WaitingList): void {
  if (readState() !== 'on') return
  const waited = new Set(before.conversations.map(({ id }) => id))
  const due = new Map(before.mine.map((one) => [one.id, one.answer_due]))
  const waiting = now.conversations.filter(({ id }) => !waited.has(id))
  const replied = now.mine.filter((one) => due.get(one.id) !== one.answer_due)
  for (const { id, title } of waiting) notifyOf(id, title, t('conversations.notification'))
  for (const { id, title } of replied) notifyOf(id, title, t('conversations.replyNotification'))
}

function notifyOf(id: string, title: string | null, heading: string): void {
  const notification = tryShow(heading, { body: title ?? '', tag: id })
  if (notification === undefined) return
  notification.onclick = () => {
    window.focus()
    window.location.assign(`/console/conversations/${id}`)
  }
}
