/** Keeps a reply that ioredis cannot handle from ending the process. */
import { createRequire } from 'node:module'
import type { Redis } from 'ioredis'

const guarded = new WeakSet<object>()

/** Has a reply that breaks the protocol end the connection, which then comes back, as ioredis does for bytes it cannot parse. */
export function treatAsLost(redis: Redis): void {
  guarded.add(redis)
}

interface Handler {
  readonly redis: Redis
}

interface Prototype {
  dispatch(this: Handler, handle: () => void): void
}

const require = createRequire(import.meta.url)
const handlers: {
  readonly default: { readonly prototype: Prototype }
} = require('ioredis/built/DataHandler.js')

/**
 * ioredis rethrows what a reply of an unexpected shape makes it throw (null for a subscription, a push without a type) in a tick of its
 * own, where nothing can catch it. Clients that are not ours keep that behaviour. This is why package.json names one version of ioredis.
 */
const { prototype } = handlers.default
const { dispatch } = prototype
prototype.dispatch = function dispatchGuarded(handle) {
  const { redis } = this
  if (!guarded.has(redis)) return dispatch.call(this, handle)
  try {
    handle()
  } catch (error) {
    redis.emit('error', error)
    redis.disconnect(true)
  }
}
