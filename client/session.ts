/** Whether the session ended while somebody was at work, and the news of another tab that one is signed in again. */

let hasEnded = false
const listeners = new Set<() => void>()
/** Between the tabs of one browser. */
const tabs = new BroadcastChannel('parley-session')
const signInListeners = new Set<() => void>()

tabs.addEventListener('message', () => {
  for (const listener of signInListeners) listener()
})

/** A call was refused because nobody is signed in. */
export function reportSessionEnd(): void {
  setEnded(true)
}

/** Somebody is signed in again, or wants to look at the page without. */
export function clearSessionEnd(): void {
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
export function publishSignIn(): void {
  tabs.postMessage('signed-in')
}

/** Calls back when another tab has signed in, until the answer is called. */
export function onSignInElsewhere(listener: () => void): () => void {
  signInListeners.add(listener)
  return () => void signInListeners.delete(listener)
}

function setEnded(value: boolean): void {
  if (hasEnded === value) return
  hasEnded = value
  for (const listener of listeners) listener()
}

let secret: string | undefined

/** Reads what stands behind `#` of `/console/sign-in`, and removes it from the address and the history at once. */
export function takeLink(): void {
  const { pathname, hash } = window.location
  if (pathname !== '/console/sign-in' || hash.length < 2) return
  secret = hash.slice(1)
  window.history.replaceState(null, '', pathname)
}

/** The secret, once: a second try would be refused anyway. */
export function consumeLink(): string | undefined {
  const taken = secret
  secret = undefined
  return taken
}

/** What signs in, of a link that was pasted: all of it where only that was. */
export function secretOf(link: string): string {
  return link.slice(link.lastIndexOf('#') + 1)
}
