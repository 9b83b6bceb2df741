/** Manages the session state, which tabs share, and the secret of a one-time sign-in link. */

let hasEnded = false
const listeners = new Set<() => void>()
/** Informs the browser's other tabs of sign-ins. */
const tabs = new BroadcastChannel('parley-session')
const signInListeners = new Set<() => void>()

tabs.addEventListener('message', () => {
  for (const listener of signInListeners) listener()
})

export function reportSessionEnd(): void {
  setEnded(true)
}

/** Call this when the user has signed in again or dismissed the dialog. */
export function clearSessionEnd(): void {
  setEnded(false)
}

export function hasSessionEnded(): boolean {
  return hasEnded
}

/** Calls `listener` after every change; returns a function that unsubscribes. */
export function onSessionChange(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Notifies the other tabs of the sign-in. */
export function publishSignIn(): void {
  tabs.postMessage('signed-in')
}

/** Calls `listener` when another tab has signed in; returns a function that unsubscribes. */
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

/** Reads the secret after `#` in `/console/sign-in`, and removes it from the address and the history. */
export function takeLink(): void {
  const { pathname, hash } = window.location
  if (pathname !== '/console/sign-in' || hash.length < 2) return
  secret = hash.slice(1)
  window.history.replaceState(null, '', pathname)
}

/** Returns the secret once, because the server accepts it only once. */
export function consumeLink(): string | undefined {
  const taken = secret
  secret = undefined
  return taken
}

/** Returns a pasted link's secret, or the text itself if it contains only the secret. */
export function secretOf(link: string): string {
  return link.slice(link.lastIndexOf('#') + 1)
}
