/** Shows desktop notifications of waiting conversations if the user has turned them on in this browser. */
import { useState } from 'react'
import { t } from '../strings/language.ts'

const STORAGE_KEY = 'parley-notifications'

/** `off` if the user has not turned them on, `blocked` if the browser forbids them. */
export type NotificationState = 'on' | 'off' | 'blocked' | 'unsupported'

export function useNotifications() {
  const [state, setState] = useState(readState)
  const toggle = async () => {
    const isOn = state === 'on'
    if (!isOn && Notification.permission === 'default') await Notification.requestPermission()
    if (isOn || Notification.permission !== 'granted') localStorage.removeItem(STORAGE_KEY)
    else localStorage.setItem(STORAGE_KEY, 'on')
    setState(readState())
    return readState()
  }
  return { state, toggle }
}

function readState(): NotificationState {
  if (!('Notification' in window)) return 'unsupported'
  if (Notification.permission === 'denied') return 'blocked'
  try {
    const isOn = Notification.permission === 'granted' && localStorage.getItem(STORAGE_KEY) === 'on'
    return isOn ? 'on' : 'off'
  } catch {
    return 'unsupported'
  }
}

interface WaitingList {
  readonly conversations: readonly { readonly id: string; readonly title: string | null }[]
}

/** Shows a notification for each conversation that has begun to wait. */
export function notify(before: WaitingList, now: WaitingList): void {
  if (readState() !== 'on') return
  const known = new Set(before.conversations.map(({ id }) => id))
  for (const { id, title } of now.conversations.filter((one) => !known.has(one.id))) {
    const notification = new Notification(t('conversations.notification'), { body: title ?? '', tag: id })
    notification.onclick = () => {
      window.focus()
      window.location.assign(`/console/conversations/${id}`)
    }
  }
}
