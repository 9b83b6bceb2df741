/** Loads the next page of a list when its end becomes visible, or when the user presses the button. */
import { Button } from '@mantine/core'
import { useIntersection } from '@mantine/hooks'
import { type RefObject, useEffect, useRef } from 'react'
import { t } from '../strings/language.ts'
import { Failed } from './QueryStates.tsx'

interface LoadMoreProps {
  readonly query: {
    readonly hasNextPage: boolean
    readonly isFetchingNextPage: boolean
    readonly isFetchNextPageError: boolean
    readonly error: unknown
    readonly fetchNextPage: () => unknown
  }
  /** The element that scrolls. */
  readonly root: RefObject<HTMLElement | null>
  /** Title of the error. */
  readonly failed: string
}

/** The list loads the next page when its end is closer than this to the visible area. */
const MARGIN = '400px'

export function LoadMore({ query, root, failed }: LoadMoreProps) {
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, error, fetchNextPage } = query
  const { ref, entry } = useIntersection({ root: root.current, rootMargin: MARGIN })
  const load = useRef(fetchNextPage)
  load.current = fetchNextPage
  const isNear = entry?.isIntersecting === true
  const isWanted = isNear && hasNextPage && !isFetchingNextPage && !isFetchNextPageError
  useEffect(() => {
    if (isWanted) void load.current()
  }, [isWanted])
  if (isFetchNextPageError) return <Failed error={error} title={failed} retry={() => void fetchNextPage()} />
  if (!hasNextPage) return null
  return (
    <Button
      ref={ref as never}
      variant="subtle"
      fullWidth
      loading={isFetchingNextPage}
      onClick={() => void fetchNextPage()}
    >
      {t('common.loadMore')}
    </Button>
  )
}
