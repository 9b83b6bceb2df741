/** Turns the pages of a list that runs from the newest to the oldest; the page stands in the address. */
import { Button, Group } from '@mantine/core'

export interface PagerProps {
  /** The entry after which this page begins; undefined on the first. */
  readonly after: string | undefined
  /** The last entry of this page, where older ones follow. */
  readonly next: string | undefined
  readonly onTurn: (after: string | undefined) => void
}

/** Nothing where there is one page only. */
export function Pager({ after, next, onTurn }: PagerProps) {
  if (after === undefined && next === undefined) return null
  return (
    <Group justify="flex-end" gap="xs" mt="sm" role="group" aria-label="Pages of the list">
      <Button variant="default" size="xs" disabled={after === undefined} onClick={() => onTurn(undefined)}>
        Newest
      </Button>
      <Button variant="default" size="xs" disabled={next === undefined} onClick={() => onTurn(next)}>
        Older
      </Button>
    </Group>
  )
}

/** Where the next page begins, of a list as the server answers it. */
export function nextOf<T>(
  page: { readonly data: readonly T[]; readonly has_more: boolean } | undefined,
  idOf: (entry: T) => string,
): string | undefined {
  const last = page?.data.at(-1)
  return page?.has_more && last !== undefined ? idOf(last) : undefined
}
