/** Keeps a reply that ioredis cannot handle from ending the process. */
import type { Redis } from 'ioredis'
import handlers from 'ioredis/built/DataHandler.js'

const guarded = new WeakSet<object>()

/** Has a reply that breaks the protocol end the connection, which then comes back, as ioredis does for bytes it cannot parse. */
export function treatAsLost(redis: Redis): void {
  guarded.add(redis)
}

interface Handler {
  readonly redis: Redis
}

/**
 * ioredis 6 throws what a reply of an unexpected shape makes it throw (null for a subscription, a push without a type) in a tick of its
 * own, where nothing can catch it. Clients that are not ours keep that behaviour. Replicas tests fail when a version of ioredis
 * handles replies elsewhere.
 */
const { prototype } = handlers.default
const dispatch: unknown = Reflect.get(prototype, 'dispatch')
if (typeof dispatch === 'function') {
  Reflect.set(prototype, 'dispatch', function dispatchGuarded(this: Handler, handle: () => void): void {
    const { redis } = this
    if (!guarded.has(redis)) return void Reflect.apply(dispatch, this, [handle])
    try {
      handle()
    } catch (error) {
      redis.emit('error', error)
      redis.disconnect(true)
    }
  })
}
