/** Limits the open streams of a caller. */
import { addressGroup, lowerLimit } from '../operations/access.ts'
import type { CallContext, Caller } from '../operations/operation.ts'
import type { StreamQuota } from '../replicas/limits.ts'
import type { Dependencies } from './dependencies.ts'

type Context = CallContext<Caller, Dependencies>

/** Limits agent keys per client address as well, because they are public. */
export function streamQuotas({ deps, caller, metadata }: Context): StreamQuota[] {
  const { streams } = deps.config.limits
  if (caller.kind === 'parent') {
    const limit = lowerLimit(streams.parent, caller.ownLimits?.streams)
    return [{ key: `parent:${caller.tenantId}`, limit }]
  }
  return [
    { key: `agent:${caller.agentId}`, limit: streams.agent },
    { key: `agent:${caller.agentId}:${addressGroup(metadata.clientAddress)}`, limit: streams.address },
  ]
}

/**
 * Yields the entries of a stored turn that a client follows; counts as one of the caller's streams.
 * @throws ServiceError `rate_limit_exceeded`
 */
export async function* withinStreamLimit<Entry>(
  context: Context,
  entries: AsyncIterable<Entry>,
): AsyncGenerator<Entry, void, void> {
  const release = await context.deps.shared.streams.acquire(streamQuotas(context))
  try {
    yield* entries
  } finally {
    await release()
  }
}
