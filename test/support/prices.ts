/** Recomputes the stored costs of calls from the stored prices. */
import { costOf, noTokens } from '../../src/prices/cost.ts'
import { renderAmount } from '../../src/prices/money.ts'

/** A call in `GET /v1/usage/calls`, with the fields that determine its cost. */
export interface PricedCall {
  readonly cost: string | null
  readonly price_id: string | null
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly created_at: number
}

/** Returns the cost of a call that made one request, according to the snapshot to which the call refers. */
export function recompute(
  call: PricedCall,
  snapshots: readonly { readonly id: string; readonly entry: string }[],
): string | undefined {
  const snapshot = snapshots.find(({ id }) => id === call.price_id)
  if (snapshot === undefined) return undefined
  const price = { id: snapshot.id, source: 'override', entry: JSON.parse(snapshot.entry) } as const
  const tokens = { ...noTokens, prompt: call.prompt_tokens, completion: call.completion_tokens }
  const cost = costOf(price, tokens, { atMs: call.created_at * 1000 })
  return cost && renderAmount(cost.total)
}
