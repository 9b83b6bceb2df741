/** Says above the page that something one did from a menu was not done: there is no form left to say it in. */
import { Alert } from '@mantine/core'
import { useMutationState, useQueryClient } from '@tanstack/react-query'
import { problemOf } from '../failure.ts'

/** The key of what is done from menus. */
export const shellActions = ['shell']

/** Of the newest alone; the next try takes it away. */
export function FailureNotice() {
  const queries = useQueryClient()
  const tries = useMutationState({
    filters: { mutationKey: shellActions },
    select: ({ state }) => state.error,
  })
  const problem = problemOf(tries.at(-1) ?? null)
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
      title="That was not done"
      withCloseButton
      closeButtonLabel="Close"
      onClose={dismiss}
    >
      {problem}
    </Alert>
  )
}
