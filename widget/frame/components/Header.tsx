/** Shows the window's header: title, menu and close button. */
import { useId, useRef, useState } from 'react'
import type { AppState } from '../app-state.ts'
import { findStreaming } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { findShareTarget } from '../sharing.ts'
import { canAskPerson } from './AskPersonButton.tsx'
import { DeleteQuestion } from './DeleteQuestion.tsx'
import {
  CloseIcon,
  CopyIcon,
  DeleteIcon,
  ExpandIcon,
  InfoIcon,
  ListIcon,
  NewIcon,
  PersonIcon,
  ShareIcon,
  ShrinkIcon,
} from './icons.tsx'
import { Menu, type MenuItem } from './Menu.tsx'
import { Notice } from './Notice.tsx'
import { OnDemand } from './OnDemand.tsx'
import { Question } from './Question.tsx'

/** The dialog that the menu has opened. */
type OpenDialog = 'new' | 'list' | 'delete' | undefined

interface HeaderProps {
  readonly title: string
  /** URL of the image that replaces the title. */
  readonly logo: string | undefined
  readonly state: AppState
}

export function Header({ title, logo, state }: HeaderProps) {
  const { session, language } = useFrame()
  const { strings } = language
  const [dialog, setDialog] = useState<OpenDialog>()
  const menuButton = useRef<HTMLButtonElement>(null)
  const items = useMenuItems(state, setDialog)

  const [isNoticeShown, setIsNoticeShown] = useState(false)
  const noticeId = useId()
  // Before the first message, the composer shows the notice.
  const canShowNotice = state.home === 'server' && state.conversation.entries.length > 0
  const closeDialog = () => setDialog(undefined)

  return (
    <>
      <header className="header">
        <Face title={title} logo={logo} />
        {canShowNotice && (
          <button
            type="button"
            className="plain-button"
            aria-label={strings.noticeButton}
            title={strings.noticeButton}
            aria-expanded={isNoticeShown}
            aria-controls={noticeId}
            onClick={() => setIsNoticeShown(!isNoticeShown)}
          >
            <InfoIcon />
          </button>
        )}
        <Menu items={items} buttonRef={menuButton} />
        {state.isExpanded !== undefined && (
          <button
            type="button"
            className="plain-button"
            aria-label={state.isExpanded ? strings.shrink : strings.expand}
            title={state.isExpanded ? strings.shrink : strings.expand}
            onClick={session.toggleExpanded}
          >
            {state.isExpanded ? <ShrinkIcon /> : <ExpandIcon />}
          </button>
        )}
        {state.options?.isInline === false && (
          <button
            type="button"
            className="plain-button"
            aria-label={strings.closeChat}
            onClick={session.close}
          >
            <CloseIcon />
          </button>
        )}
      </header>
      {canShowNotice && isNoticeShown && (
        <section className="header-notice" id={noticeId} aria-label={strings.noticeButton}>
          <Notice state={state} />
        </section>
      )}
      {dialog === 'new' && (
        <Question
          title={strings.newConversationQuestion}
          text={strings.newConversationLoss}
          yes={strings.startNew}
          no={strings.cancel}
          onAnswer={(isYes) => {
            if (isYes) session.startNew()
            closeDialog()
          }}
        />
      )}
      {dialog === 'list' && (
        <OnDemand load={loadEarlier} props={{ state, onClose: closeDialog }} onFailure={closeDialog} />
      )}
      {dialog === 'delete' && state.conversationId !== undefined && (
        <DeleteQuestion id={state.conversationId} onEnd={closeDialog} />
      )}
    </>
  )
}

async function loadEarlier() {
  return (await import('./EarlierConversations.tsx')).EarlierConversations
}

/** Shows the avatar and the title, or the logo. */
function Face({ title, logo }: Pick<HeaderProps, 'title' | 'logo'>) {
  // URL of the logo that could not be loaded.
  const [broken, setBroken] = useState<string>()
  if (logo !== undefined && logo !== broken)
    return (
      <h1 className="logo">
        <img src={logo} alt={title} height={28} onError={() => setBroken(logo)} />
      </h1>
    )
  const [initial = ''] = title
  return (
    <>
      <span className="face" aria-hidden="true">
        {initial.toLocaleUpperCase()}
      </span>
      <h1>
        <bdi>{title}</bdi>
      </h1>
    </>
  )
}

function useMenuItems(state: AppState, setDialog: (dialog: OpenDialog) => void): readonly MenuItem[] {
  const { session, language } = useFrame()
  const { strings } = language
  const { agent, conversation, conversationId, home } = state
  const isStored = home === 'server'
  const canShare = findShareTarget(state.options) !== 'clipboard'
  const isEmpty = conversation.entries.length === 0
  return [
    {
      name: strings.newConversation,
      icon: <NewIcon />,
      isDisabled: isEmpty && state.opening === undefined,
      // The server keeps the messages, so the visitor loses nothing.
      act: () => (isStored ? session.startNew() : setDialog('new')),
    },
    {
      name: strings.earlierConversations,
      icon: <ListIcon />,
      isHidden: !isStored || agent?.conversations?.list !== true,
      act: () => setDialog('list'),
    },
    {
      name: strings.people.ask,
      icon: <PersonIcon />,
      isHidden: !isStored || agent?.conversations?.handover?.button !== true,
      isDisabled: !canAskPerson(state),
      hint: conversationId === undefined ? strings.people.askHint : undefined,
      act: () => session.stored.requestPerson(),
    },
    {
      name: canShare ? strings.shareConversation : strings.copyConversation,
      icon: canShare ? <ShareIcon /> : <CopyIcon />,
      isDisabled: isEmpty || findStreaming(conversation) !== undefined,
      act: () => void session.shareConversation(),
    },
    {
      name: strings.deleteConversation,
      icon: <DeleteIcon />,
      isHidden: !isStored || agent?.conversations?.delete !== true,
      isDisabled: conversationId === undefined,
      act: () => setDialog('delete'),
    },
  ]
}
