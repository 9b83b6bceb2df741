/** The small buttons under a reply. */

import { useFrame } from '../frame-context.ts'
import { DoneIcon, InsertIcon, RetryIcon, ShareIcon } from '../lib/icons.tsx'
import { useFlash } from '../lib/use-flash.ts'
import { CopyButton } from './CopyButton.tsx'

export function ReplyActions({ text, canRegenerate }: { text: string; canRegenerate: boolean }) {
  const { session, language } = useFrame()
  const { strings } = language
  const [isShared, flashShared] = useFlash()
  return (
    <div className="actions">
      {text !== '' && (
        <>
          <CopyButton text={text} name={strings.copyMessage} />
          <Action name={strings.insert} icon={<InsertIcon />} act={() => session.insert(text)} />
          <Action
            name={isShared ? strings.shared : strings.share}
            icon={isShared ? <DoneIcon /> : <ShareIcon />}
            act={() => {
              session.shareMessage(text)
              flashShared()
            }}
          />
        </>
      )}
      {canRegenerate && <Action name={strings.regenerate} icon={<RetryIcon />} act={session.retry} />}
    </div>
  )
}

interface ActionProps {
  readonly name: string
  readonly icon: React.ReactNode
  readonly act: () => void
}

function Action({ name, icon, act }: ActionProps) {
  return (
    <button type="button" className="action" title={name} aria-label={name} onClick={act}>
      {icon}
    </button>
  )
}
