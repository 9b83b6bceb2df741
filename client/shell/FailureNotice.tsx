/** Shows an error above the page if a menu action fails, because the menu itself has closed. */
import { Alert } from '@mantine/core'
import { useMutationState, useQueryClient } from '@tanstack/react-query'
import { RequestId } from '../components/RequestId.tsx'
import { problemOf } from '../failure.ts'
import { t } from '../strings/language.ts'

export const shellActions = ['shell']

/** Shows the latest action's error until the next action starts. */
export function FailureNotice() {
  const queries = useQueryClient()
  const tries = useMutationState({
    filters: { mutationKey: shellActions },
    select: ({ state }) => state.error,
  })
  const error = tries.at(-1) ?? null
  const problem = problemOf(error)
  if (problem === undefined) return null
  const dismiss = () => {
    const cache = queries.getMutationCache()
    for (const one of cache.findAll({ mutationKey: shellActions })) cache.remove(one)
  }
  return (
    <Alert
      color="red"
      role="alert"
      mb="md"
      title={t('shell.actionFailed')}
      withCloseButton
      closeButtonLabel={t('common.close')}
      onClose={dismiss}
    >
      {problem}
      <RequestId error={error} />
    </Alert>
  )
}
