/** Lets cheaper models answer new turns when a budget is nearly used up. */
import type { Spender } from '../../budgets/enforcer.ts'
import { ServiceError } from '../../lib/errors.ts'
import { listDegraded, listFallbacks, type SkippedModel } from '../../models/policy.ts'
import type { ChatRequest } from '../../providers/chat-api.ts'
import type { ModelRoute } from '../../providers/provider.ts'
import type { Dependencies } from '../dependencies.ts'
import type { Turn } from '../prepare-turn.ts'
import { type TurnAgent, withCheckedAttachments } from './agent-request.ts'

/**
 * Returns the turn with the model of the last step in the policy's `degrade` that is reached and that can
 * answer. Never rejects: if the counters cannot be read, the turn keeps its model, and enforcing budgets reject
 * it before its first request to a provider.
 */
export async function degradeTurn(
  deps: Dependencies,
  turn: Turn,
  agent: TurnAgent,
  spender: Spender,
): Promise<Turn> {
  const percent = await readUsedPercent(deps, spender)
  const skipped: SkippedModel[] = []
  for (const name of listDegraded(agent.policy, percent)) {
    const route = deps.models.findRoute(name.provider, name.model)
    const request = route && adaptRequest(deps, agent, route, turn.request)
    if (route === undefined) skipped.push({ ...name, why: 'not_available' })
    else if (request === undefined) skipped.push({ ...name, why: 'attachment_not_supported' })
    else {
      const [{ backend, model }] = turn.routes
      if (backend !== route.backend || model !== route.model)
        skipped.push({ provider: backend.name, model, why: 'budget' })
      return {
        ...turn,
        routes: [route, ...listFallbacks(deps.models, agent.policy, route)],
        request,
        isDegraded: true,
        explain: () => explain(turn, skipped, 'budget'),
      }
    }
  }
  return skipped.length === 0 ? turn : { ...turn, explain: () => explain(turn, skipped) }
}

async function readUsedPercent({ budgets, log }: Dependencies, spender: Spender): Promise<number> {
  try {
    return await budgets.readUsedPercent(spender)
  } catch (error) {
    log.warn({ err: error }, 'could not read budgets; a turn keeps its model')
    return 0
  }
}

/** Returns undefined if the model does not accept a new attachment. Omits earlier attachments. */
function adaptRequest(
  { models }: Dependencies,
  agent: TurnAgent,
  route: ModelRoute,
  request: ChatRequest,
): ChatRequest | undefined {
  try {
    return withCheckedAttachments(models, agent, route, request)
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}

function explain(
  turn: Turn,
  skipped: readonly SkippedModel[],
  source?: 'budget',
): ReturnType<Turn['explain']> {
  const { route, policy } = turn.explain()
  return {
    route: { ...route, source: source ?? route.source, skipped: [...skipped, ...route.skipped] },
    policy,
  }
}
