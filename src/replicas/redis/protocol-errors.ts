/** Prevents a reply that ioredis cannot handle from ending the process. */
import { createRequire } from 'node:module'
import type { Redis } from 'ioredis'

const guarded = new WeakSet<object>()

/** Makes a reply that breaks the protocol reset the connection, as ioredis does for bytes that it cannot parse. */
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
 * A reply of an unexpected shape (null for a subscription, a push without a type) makes ioredis throw in a separate tick, where no caller
 * can catch it. Clients of a host that embeds Parley keep that behaviour. package.json pins the version of ioredis because of this patch.
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
