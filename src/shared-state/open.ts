/** Opens what replicas share where the settings say. */
import type { Clock } from '../deps.ts'
import { createLoneState, type SharedState } from './shared-state.ts'

/** Never fails: a store that is away is gone without until it is there. */
export async function openSharedState(_config: object, { clock }: { clock: Clock }): Promise<SharedState> {
  return createLoneState(clock)
}
