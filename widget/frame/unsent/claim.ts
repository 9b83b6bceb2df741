/** Lets only one of the browser's tabs send a message. */

/**
 * Calls `act` when no other tab has claimed the message. The claim lasts until the promise of `act` settles or the
 * tab is closed. `signal` ends the wait. Where browsers have no locks, as on pages without HTTPS, each tab gets the
 * claim; the server accepts a message with the same id only once.
 */
export function claim(id: string, signal: AbortSignal, act: () => Promise<unknown>): void {
  const { locks } = navigator as { readonly locks?: LockManager }
  const claimed = locks?.request(`parley-message ${id}`, { signal }, act) ?? Promise.resolve().then(act)
  claimed.catch((thrown) => {
    // Frames whose storage is blocked cannot use locks.
    if (thrown instanceof DOMException && thrown.name === 'SecurityError') return act()
    if (!signal.aborted) throw thrown
  })
}
