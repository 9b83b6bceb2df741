/** Runs a repeated task one run at a time. */

/** Runs `work` one at a time; calls during a run share the next run. */
export function inTurn(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined
  return () => {
    next ??= running.then(() => {
      next = undefined
      running = work()
      return running
    })
    return next
  }
}
