/** Shows which version of an answer is visible, and pages through the others. */
import type { Reply } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { fill } from '../strings/strings.ts'
import { Action } from './ActionButton.tsx'
import { BackIcon, ForwardIcon } from './icons.tsx'

/** Shows nothing for an answer with one version. */
export function VersionPager({ reply: { id, versions } }: { reply: Reply }) {
  const { session, language } = useFrame()
  const { tag, strings } = language
  if (versions === undefined) return null
  const { before, after } = versions
  const format = new Intl.NumberFormat(tag)
  const number = format.format(before.length + 1)
  const count = format.format(before.length + 1 + after.length)
  return (
    <fieldset className="pager" aria-label={fill(strings.version, { number, count })}>
      <Action
        name={strings.earlierVersion}
        icon={<BackIcon />}
        isDisabled={before.length === 0}
        act={() => session.messages.showVersion(id, -1)}
      />
      <span aria-hidden="true" dir="ltr">
        {number} / {count}
      </span>
      <Action
        name={strings.laterVersion}
        icon={<ForwardIcon />}
        isDisabled={after.length === 0}
        act={() => session.messages.showVersion(id, 1)}
      />
    </fieldset>
  )
}
