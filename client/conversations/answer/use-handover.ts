/** Takes a conversation over from the model, and hands it back. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api } from '../../api.ts'
import { problemOf } from '../../failure.ts'
import { showProblem } from '../../shell/toast.tsx'
import { useMe } from '../../shell/use-me.ts'
import { type Conversation, loadConversation, showConversation } from '../queries.ts'

export function useHandover({ id, parley }: Conversation) {
  const queries = useQueryClient()
  const { user } = useMe()
  const mode = parley?.mode ?? 'model'
  const assignee = parley?.assignee ?? null
  const onSuccess = ({ mode: _mode, assignee: _assignee, ...changed }: ChangedMode) =>
    showConversation(queries, changed)
  const onError = (thrown: unknown) => {
    showProblem(problemOf(thrown))
    // Another person was faster, or the time to answer has passed.
    void loadConversation(queries, id)
  }
  const takeOver = useMutation({
    mutationFn: () => api.conversations.takeover.mutate({ conversation_id: id }),
    onSuccess,
    onError,
  })
  const handBack = useMutation({
    mutationFn: () => api.conversations.handback.mutate({ conversation_id: id }),
    onSuccess,
    onError,
  })
  const isMine = mode === 'person' && assignee !== null && assignee === user?.email
  return { mode, assignee, isMine, takeOver, handBack }
}

type ChangedMode = Awaited<ReturnType<typeof api.conversations.takeover.mutate>>
export type Handover = ReturnType<typeof useHandover>
