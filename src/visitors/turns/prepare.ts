/** Prepares the runs of visitors' turns. */
import type { Agent } from '../../agents/cache.ts'
import { runTurn } from '../../chat/chat.ts'
import { prepareTurn, type Turn } from '../../chat/prepare-turn.ts'
import { withRequestPerson } from '../../chat/stored-chat.ts'
import type { RunModel } from '../../conversations/conversations.ts'
import type { History } from '../../conversations/reader.ts'
import { findRefusal } from '../../models/policy.ts'
import type { ChatRequest } from '../../providers/chat-api.ts'
import type { Context } from '../visitors.ts'

interface Prepared {
  readonly run: RunModel
  readonly endSpan: Turn['endSpan']
}

/**
 * Prepares the run of a turn. If no model may answer, the run fails, so that the turn is stored and the owner
 * sees the visitor's message. @throws ServiceError
 */
export async function prepareRun(
  context: Context,
  agent: Agent,
  request: ChatRequest,
  history: History,
): Promise<Prepared> {
  try {
    const turn = { ...withRequestPerson(await prepareTurn(context, request)), history }
    return {
      run: (signal, reports) => runTurn(context, turn, signal, reports),
      endSpan: turn.endSpan,
    }
  } catch (error) {
    const run = refuse(context, agent, request, history)
    if (run === undefined) throw error
    return { run, endSpan() {} }
  }
}

/** Returns a run that fails because no model may answer; undefined if a model may. */
function refuse(
  { deps }: Context,
  { row, definition, policy }: Agent,
  { model }: ChatRequest,
  history: History,
): RunModel | undefined {
  const wishes = { policy, ownModel: definition.model }
  const refusal = findRefusal(deps.models, wishes, model)
  if (refusal === undefined) return undefined
  const { failure, ...reasons } = refusal
  // biome-ignore lint/correctness/useYield: the run fails before its first event.
  return async function* (_signal, reports) {
    reports.explained({
      ...reasons,
      agent: { id: row.id, version: row.version },
      ...{ attempts: [], fallback: false, tools: [], budget: null },
      history: { sent: history.items.length, left_out: history.leftOut },
    })
    throw failure
  }
}
