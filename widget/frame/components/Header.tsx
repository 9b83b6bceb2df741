/** The top of the window: what this is, what else can be done, and the way out. */
import { useRef, useState } from 'react'
import type { AppState } from '../app-state.ts'
import { findStreaming } from '../conversation/state.ts'
import { useFrame } from '../frame-context.ts'
import { CloseIcon, NewIcon, ShareIcon } from '../lib/icons.tsx'
import { Menu, type MenuItem } from './Menu.tsx'
import { Question } from './Question.tsx'

export function Header({ title, state }: { title: string; state: AppState }) {
  const { session, language } = useFrame()
  const { strings } = language
  const [isAsking, setIsAsking] = useState(false)
  const menuButton = useRef<HTMLButtonElement>(null)
  const { entries } = state.conversation
  const isEmpty = entries.length === 0
  const items: readonly MenuItem[] = [
    {
      name: strings.newConversation,
      icon: <NewIcon />,
      isDisabled: isEmpty,
      act: () => setIsAsking(true),
    },
    {
      name: strings.shareConversation,
      icon: <ShareIcon />,
      isDisabled: isEmpty || findStreaming(state.conversation) !== undefined,
      act: session.shareConversation,
    },
  ]
  return (
    <header className="header">
      <h1>
        <bdi>{title}</bdi>
      </h1>
      <Menu items={items} buttonRef={menuButton} />
      {state.options?.isInline === false && (
        <button type="button" className="plain-button" aria-label={strings.closeChat} onClick={session.close}>
          <CloseIcon />
        </button>
      )}
      {isAsking && (
        <Question
          title={strings.newConversationQuestion}
          text={strings.newConversationLoss}
          yes={strings.startNew}
          no={strings.cancel}
          onAnswer={(isYes) => {
            setIsAsking(false)
            if (isYes) session.startNew()
            menuButton.current?.focus()
          }}
        />
      )}
    </header>
  )
}
