/** Shows the visitor's earlier conversations in a dialog that covers the window. */
import { useCallback, useEffect, useId, useRef, useState } from 'react'
import type { AppState } from '../app-state.ts'
import { type Failure, toChatFailure } from '../failure.ts'
import { useFrame } from '../frame-context.ts'
import type { EarlierConversation } from '../server-conversation/server-conversation.ts'
import { agoIn, fill } from '../strings/strings.ts'
import { DeleteQuestion } from './DeleteQuestion.tsx'
import { Dots } from './Dots.tsx'
import { FailureNote } from './FailureNote.tsx'
import { BackIcon, DeleteIcon } from './icons.tsx'
import { useModal } from './use-modal.ts'

export function EarlierConversations({ state, onClose }: { state: AppState; onClose: () => void }) {
  const { session, language } = useFrame()
  const { strings } = language
  const dialog = useRef<HTMLDialogElement>(null)
  const backButton = useRef<HTMLButtonElement>(null)
  const id = useId()
  const list = useEarlierConversations()
  const [deleting, setDeleting] = useState<string>()
  useModal(dialog)

  return (
    <dialog
      ref={dialog}
      className="panel"
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      <div className="header">
        <button
          type="button"
          className="plain-button"
          ref={backButton}
          aria-label={strings.backToChat}
          title={strings.backToChat}
          onClick={onClose}
        >
          <BackIcon />
        </button>
        <h2 id={id}>{strings.earlierConversations}</h2>
      </div>
      <div className="panel-body" aria-busy={list.isLoading}>
        {list.conversations.length > 0 && (
          <ul className="conversations">
            {list.conversations.map((conversation) => (
              <Row
                key={conversation.id}
                conversation={conversation}
                isShown={conversation.id === state.conversationId}
                onShow={() => {
                  if (conversation.id !== state.conversationId) session.stored.showEarlier(conversation.id)
                  onClose()
                }}
                onDelete={state.agent?.conversations?.delete ? () => setDeleting(conversation.id) : undefined}
              />
            ))}
          </ul>
        )}
        {list.isLoading && <Dots label={strings.loading} />}
        {list.failure !== undefined && <FailureNote failure={list.failure} onRetry={list.loadMore} />}
        {list.isEmpty && <p className="empty">{strings.noEarlierConversations}</p>}
        {list.hasMore && !list.isLoading && list.failure === undefined && (
          <button type="button" className="button" onClick={list.loadMore}>
            {strings.showMore}
          </button>
        )}
      </div>
      {deleting !== undefined && (
        <DeleteQuestion
          id={deleting}
          onEnd={(isDeleted) => {
            setDeleting(undefined)
            if (!isDeleted) return
            list.drop(deleting)
            // The button that had the focus disappears with its row.
            setTimeout(() => backButton.current?.focus())
          }}
        />
      )}
    </dialog>
  )
}

interface RowProps {
  readonly conversation: EarlierConversation
  readonly isShown: boolean
  readonly onShow: () => void
  readonly onDelete: (() => void) | undefined
}

function Row({ conversation, isShown, onShow, onDelete }: RowProps) {
  const { language } = useFrame()
  const { strings } = language
  const title = conversation.title || strings.untitled
  const deleteName = fill(strings.deleteNamed, { title })
  return (
    <li className="conversation-row">
      <button
        type="button"
        className="conversation-button"
        aria-current={isShown ? 'true' : undefined}
        onClick={onShow}
      >
        <bdi className="conversation-title">{title}</bdi>
        <span className="conversation-time">
          {agoIn(language, conversation.lastAt, Math.floor(Date.now() / 1000))}
        </span>
        {conversation.isUnread && <span className="unread-mark">{strings.unread}</span>}
      </button>
      {onDelete !== undefined && (
        <button
          type="button"
          className="plain-button"
          aria-label={deleteName}
          title={deleteName}
          onClick={onDelete}
        >
          <DeleteIcon />
        </button>
      )}
    </li>
  )
}

/** Reads the list in pages. */
function useEarlierConversations() {
  const { session } = useFrame()
  const [conversations, setConversations] = useState<readonly EarlierConversation[]>([])
  const [hasMore, setHasMore] = useState(true)
  const [isLoading, setIsLoading] = useState(true)
  const [failure, setFailure] = useState<Failure>()
  const last = useRef<string | undefined>(undefined)

  const loadMore = useCallback(async () => {
    setIsLoading(true)
    setFailure(undefined)
    try {
      const page = await session.stored.listEarlier(last.current)
      last.current = page.conversations.at(-1)?.id ?? last.current
      setConversations((before) => [...before, ...page.conversations])
      setHasMore(page.hasMore)
    } catch (thrown) {
      setFailure(toChatFailure(thrown).failure)
    } finally {
      setIsLoading(false)
    }
  }, [session])

  useEffect(() => void loadMore(), [loadMore])

  return {
    conversations,
    hasMore,
    isLoading,
    failure,
    isEmpty: !isLoading && failure === undefined && conversations.length === 0,
    loadMore: () => void loadMore(),
    drop: (id: string) => setConversations((before) => before.filter((one) => one.id !== id)),
  }
}
