/** Shows the window's header: title, menu and close button. */
import { useEffect, useId, useRef, useState } from 'react'
import type { AppState } from '../app-state.ts'
import { findStreaming } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { CloseIcon, NewIcon, ShareIcon } from './icons.tsx'
import { Menu, type MenuItem } from './Menu.tsx'

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

interface Props {
  readonly title: string
  readonly text: string
  readonly yes: string
  readonly no: string
  readonly onAnswer: (isYes: boolean) => void
}

function Question({ title, text, yes, no, onAnswer }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => dialog.current?.showModal(), [])

  function answer(isYes: boolean): void {
    // Closes the dialog first, because elements outside an open modal dialog cannot take the focus.
    dialog.current?.close()
    onAnswer(isYes)
  }

  return (
    <dialog
      ref={dialog}
      className="question"
      aria-labelledby={`${id}-title`}
      aria-describedby={`${id}-text`}
      onCancel={(event) => {
        event.preventDefault()
        answer(false)
      }}
    >
      <h2 id={`${id}-title`}>{title}</h2>
      <p id={`${id}-text`}>{text}</p>
      <div className="buttons">
        <button type="button" className="button" onClick={() => answer(false)}>
          {no}
        </button>
        <button type="button" className="button primary" onClick={() => answer(true)}>
          {yes}
        </button>
      </div>
    </dialog>
  )
}
