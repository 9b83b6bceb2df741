/**
 * Moves uploads to the bin and offers to undo the move. Restores or permanently deletes uploads in the bin.
 */
import type { QueryClient } from '@tanstack/react-query'
import { api } from '../api.ts'
import { problemOf } from '../failure.ts'
import { showDone, showProblem, showUndo } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'

type Ids = readonly string[]

/**
 * Reloads everything about uploads, because some uploads may have changed even if the operation failed for
 * another one.
 */
function refresh(queries: QueryClient): Promise<void> {
  return queries.invalidateQueries({ queryKey: ['artifacts'] })
}

/** Moves finished uploads to the bin, and shows a message with a button that restores them. */
export async function binArtifacts(queries: QueryClient, ids: Ids): Promise<void> {
  await Promise.all(ids.map((id) => api.artifacts.bin.mutate({ artifact_id: id }))).finally(() =>
    refresh(queries),
  )
  showUndo(ids.length === 1 ? t('bin.movedUpload') : t('bin.movedUploads'), () =>
    restoreArtifacts(queries, ids).catch((thrown) => showProblem(problemOf(thrown))),
  )
}

export async function restoreArtifacts(queries: QueryClient, ids: Ids): Promise<void> {
  await Promise.all(ids.map((id) => api.artifacts.restoreFromBin.mutate({ artifact_id: id }))).finally(() =>
    refresh(queries),
  )
  showDone(ids.length === 1 ? t('bin.restoredUpload') : t('bin.restoredUploads'))
}

export async function deleteArtifactsForever(queries: QueryClient, ids: Ids): Promise<void> {
  await Promise.all(ids.map((id) => api.artifacts.deleteFromBin.mutate({ artifact_id: id }))).finally(() =>
    refresh(queries),
  )
  showDone(ids.length === 1 ? t('bin.deletedUpload') : t('bin.deletedUploads'))
}
