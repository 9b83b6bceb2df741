/** Shows a text in which the words of a search are marked. */
import { splitHits } from '../search-hits.ts'

export function Highlighted({ text, query }: { readonly text: string; readonly query: string }) {
  return splitHits(text, query).map(({ text: part, isHit }, index) =>
    isHit ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: a part has no other identity
      <mark key={index}>{part}</mark>
    ) : (
      part
    ),
  )
}
