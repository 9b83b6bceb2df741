/** Whether the session ended while somebody was at work, and the news of another tab that one is signed in again. Decision: 10. */

let hasEnded = false
const listeners = new Set<() => void>()
/** Between the tabs of one browser. */
const tabs = new BroadcastChannel('parley-session')
const arrivals = new Set<() => void>()

tabs.addEventListener('message', () => {
  for (const listener of arrivals) listener()
})

/** A call was refused because nobody is signed in. */
export function noticeSessionEnd(): void {
  setEnded(true)
}

/** Somebody is signed in again, or wants to look at the page without. */
export function forgetSessionEnd(): void {
  setEnded(false)
}

export function hasSessionEnded(): boolean {
  return hasEnded
}

/** Calls back after every change until the answer is called. */
export function onSessionChange(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Tells the other tabs that they may go on. */
export function announceSignIn(): void {
  tabs.postMessage('signed-in')
}

/** Calls back when another tab has signed in, until the answer is called. */
export function onSignInElsewhere(listener: () => void): () => void {
  arrivals.add(listener)
  return () => void arrivals.delete(listener)
}

function setEnded(value: boolean): void {
  if (hasEnded === value) return
  hasEnded = value
  for (const listener of listeners) listener()
}
