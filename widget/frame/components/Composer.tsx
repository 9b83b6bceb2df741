/** Shows the message input and its send button. */
import { type KeyboardEvent, useEffect, useId, useLayoutEffect, useRef, useState } from 'react'
import type { AppState } from '../app-state.ts'
import { useAttachments } from '../attachments/use-attachments.ts'
import { findStreaming } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { canDictate } from '../speech/dictation.ts'
import { fill } from '../strings/strings.ts'
import { AttachButton, ChosenAttachments } from './AttachmentViews.tsx'
import { DictateButton } from './DictateButton.tsx'
import { Disclaimer } from './Disclaimer.tsx'
import { FailureNote } from './FailureNote.tsx'
import { SendIcon, StopIcon } from './icons.tsx'
import { Notice } from './Notice.tsx'

/** Maximum length of a message to the model and to a person, in UTF-16 code units. */
const MAX_LENGTH = 32_000
const MAX_PERSON_LENGTH = 8_000
/** Share of the maximum length at which the counter appears. */
const NEAR_LENGTH = 0.875

export function Composer({ state }: { state: AppState }) {
  const { session, language } = useFrame()
  const { strings } = language
  const [text, setText] = useState('')
  const [cannotHear, setCannotHear] = useState(false)
  const attachments = useAttachments()
  const area = useRef<HTMLTextAreaElement>(null)
  const id = useId()
  const isStreaming = findStreaming(state.conversation) !== undefined
  const maxLength = state.answering.mode === 'model' ? MAX_LENGTH : MAX_PERSON_LENGTH
  const isTooLong = text.length > maxLength
  const isNearEnd = text.length > maxLength * NEAR_LENGTH
  const canSend =
    (text.trim() !== '' || attachments.list.length > 0) &&
    !attachments.isReading &&
    !isTooLong &&
    !isStreaming &&
    state.blocked === undefined &&
    state.opening === undefined

  /** Also true if the model accepts no type of file, so that a dropped file causes an explanation. */
  const takesFiles = state.agent?.attachments != null && state.blocked === undefined

  useLayoutEffect(() => {
    if (state.draft !== undefined) setText(state.draft.text)
  }, [state.draft])

  useGrowth(area, text)
  useEffect(() => {
    if (state.focusCount > 0) area.current?.focus()
  }, [state.focusCount])

  useEffect(() => {
    if (state.prefill === undefined) return
    setText(state.prefill.text)
    session.saveDraft(state.prefill.text)
    area.current?.focus()
  }, [state.prefill, session])

  function change(next: string): void {
    setText(next)
    session.saveDraft(next)
  }

  function send(): void {
    if (!canSend || !session.send(text.trim(), attachments.list)) return
    change('')
    attachments.clear()
  }

  function onKeyDown(event: KeyboardEvent): void {
    // While the visitor composes text, Enter selects a candidate. Some browsers report composition only as
    // key code 229.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing || event.keyCode === 229)
      return
    event.preventDefault()
    send()
  }

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button and pasting do the same as dropping
    <footer
      className="composer"
      onDragOver={(event) => takesFiles && event.preventDefault()}
      onDrop={(event) => {
        if (!takesFiles || event.dataTransfer.files.length === 0) return
        event.preventDefault()
        attachments.add([...event.dataTransfer.files])
      }}
    >
      <ChosenAttachments chosen={attachments} />
      {!state.isOnline && <p className="offline">{strings.offlineNotice}</p>}
      {state.conversation.entries.length === 0 && <Notice state={state} />}
      {state.notice !== undefined && <FailureNote failure={state.notice} />}
      <form
        className="input"
        onSubmit={(event) => {
          event.preventDefault()
          send()
        }}
      >
        <AttachButton chosen={attachments} />
        <textarea
          ref={area}
          rows={1}
          // An empty input uses the window's text direction, because its placeholder does.
          dir={text === '' ? undefined : 'auto'}
          value={text}
          aria-label={strings.messageLabel}
          aria-describedby={isNearEnd ? id : undefined}
          aria-invalid={isTooLong}
          placeholder={state.options?.placeholder || strings.placeholder}
          disabled={state.blocked !== undefined}
          enterKeyHint="send"
          onInput={(event) => change(event.currentTarget.value)}
          onKeyDown={onKeyDown}
          onPaste={(event) => {
            if (!takesFiles || event.clipboardData.files.length === 0) return
            event.preventDefault()
            attachments.add([...event.clipboardData.files])
          }}
        />
        {state.agent?.dictation === true && canDictate() && (
          <DictateButton text={text} onText={change} onFailure={setCannotHear} />
        )}
        <MainButton isStreaming={isStreaming} canSend={canSend} />
      </form>
      {isNearEnd && <Length id={id} length={text.length} limit={maxLength} />}
      {cannotHear && (
        <p className="offline" role="alert">
          {strings.dictationFailed}
        </p>
      )}
      {state.answering.mode !== 'person' && <Disclaimer state={state} />}
    </footer>
  )
}

/** Uses one button for sending and stopping, so that it keeps the focus. */
function MainButton({ isStreaming, canSend }: { isStreaming: boolean; canSend: boolean }) {
  const { session, language } = useFrame()
  const name = isStreaming ? language.strings.stop : language.strings.send
  return (
    <button
      type={isStreaming ? 'button' : 'submit'}
      className="main-button"
      aria-label={name}
      title={name}
      aria-disabled={!isStreaming && !canSend}
      // Ignores a double click's second click, because the visitor meant to click Send.
      onClick={isStreaming ? ({ detail }) => detail > 1 || session.stop() : undefined}
    >
      {isStreaming ? <StopIcon /> : <SendIcon />}
    </button>
  )
}

function Length({ id, length, limit }: { id: string; length: number; limit: number }) {
  const { tag, strings } = useFrame().language
  const isTooLong = length > limit
  const number = new Intl.NumberFormat(tag)
  const words = isTooLong ? strings.tooLongInput : strings.charactersUsed
  return (
    <p id={id} className="length" data-too-long={isTooLong}>
      {fill(words, { count: number.format(length), limit: number.format(limit) })}
    </p>
  )
}

/** Grows the input with its text, up to the limit in the style sheet. */
function useGrowth(area: React.RefObject<HTMLTextAreaElement | null>, text: string): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the height follows the text
  useLayoutEffect(() => {
    const { current } = area
    if (current === null || CSS.supports('field-sizing', 'content')) return
    current.style.height = 'auto'
    current.style.height = `${current.scrollHeight}px`
  }, [area, text])
}
