/** The promise behind `ParleyChat.ready`. */
import { sharedPage } from '../host/page.ts'
import type { ParleyChat } from './public-api.ts'

/** Answers the readiness of the widget there is, or of the next one. */
export function createReadiness(api: ParleyChat): () => Promise<ParleyChat> {
  const page = sharedPage()
  let settle: (() => void) | undefined
  let ready: Promise<ParleyChat> | undefined

  function follow(): void {
    if (page.widget?.state.isReady) {
      settle?.()
      settle = undefined
    } else if (settle === undefined) ready = undefined
  }

  page.listeners.add(follow)
  return () => {
    ready ??= new Promise((resolve) => {
      settle = () => resolve(api)
    })
    follow()
    return ready as Promise<ParleyChat>
  }
}
