/** Moves agents to the bin and offers to undo the move. Restores or permanently deletes agents in the bin. */
import type { QueryClient } from '@tanstack/react-query'
import { api } from '../api.ts'
import { problemOf } from '../failure.ts'
import { showDone, showProblem, showUndo } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'

type Ids = readonly string[]

/**
 * Reloads everything about agents, because some agents may have changed even if the operation failed for
 * another one.
 */
function refresh(queries: QueryClient): Promise<void> {
  return queries.invalidateQueries({ queryKey: ['agents'] })
}

/**
 * Moves agents to the bin, and shows a message with a button that restores them. `leave` opens another page
 * before the moved agents are reloaded.
 */
export async function binAgents(
  queries: QueryClient,
  ids: Ids,
  leave?: () => Promise<unknown>,
): Promise<void> {
  try {
    await Promise.all(ids.map((id) => api.agents.bin.mutate({ agent_id: id })))
    await leave?.()
  } finally {
    await refresh(queries)
  }
  showUndo(ids.length === 1 ? t('bin.movedOne') : t('bin.movedMany'), () =>
    restoreAgents(queries, ids).catch((thrown) => showProblem(problemOf(thrown))),
  )
}

export async function restoreAgents(queries: QueryClient, ids: Ids): Promise<void> {
  await Promise.all(ids.map((id) => api.agents.restoreFromBin.mutate({ agent_id: id }))).finally(() =>
    refresh(queries),
  )
  showDone(ids.length === 1 ? t('bin.restoredOne') : t('bin.restoredMany'))
}

export async function deleteForever(queries: QueryClient, ids: Ids): Promise<void> {
  await Promise.all(ids.map((id) => api.agents.deleteFromBin.mutate({ agent_id: id }))).finally(() =>
    refresh(queries),
  )
  showDone(ids.length === 1 ? t('bin.deletedOne') : t('bin.deletedMany'))
}
