/** Not there yet. */
import { Empty } from '../parts/states.tsx'

export function PolicyPage() {
  return (
    <Empty icon="agents" title="Models">
      Nothing here yet.
    </Empty>
  )
}
