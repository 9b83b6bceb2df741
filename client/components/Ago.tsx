/** A moment as its distance from now; the moment itself stands in its title. */
import { renderAgo, renderMoment } from '../lib/format.ts'

export function Ago({ seconds }: { readonly seconds: number }) {
  return (
    <time dateTime={new Date(seconds * 1_000).toISOString()} title={renderMoment(seconds)}>
      {renderAgo(seconds)}
    </time>
  )
}
