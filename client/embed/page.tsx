/** Not there yet. */
import { Empty } from '../parts/states.tsx'

export function EmbedPage() {
  return (
    <Empty icon="agents" title="Embed">
      Nothing here yet.
    </Empty>
  )
}
