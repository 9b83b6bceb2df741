/** What the person said, as it was typed. */
import { memo } from 'react'
import type { UserMessage } from '../conversation/state.ts'
import { useFrame } from '../frame-context.ts'

export const UserBubble = memo(function UserBubble({ entry }: { entry: UserMessage }) {
  const { strings } = useFrame().language
  return (
    <article className="entry user">
      <h2 className="unseen">{strings.youSaid}</h2>
      <div className="bubble" dir="auto">
        {entry.text}
      </div>
    </article>
  )
})
