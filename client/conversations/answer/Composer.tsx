/** Lets the user write to the visitor. */
import { Button, Text, Textarea } from '@mantine/core'
import { type KeyboardEvent, useState } from 'react'
import { t } from '../../strings/language.ts'
import type { Conversation } from '../queries.ts'
import { send } from './outbox.ts'
import type { Handover } from './use-handover.ts'

/** The server's limit for a message, in UTF-16 code units. */
const MAX_LENGTH = 8_000

interface ComposerProps {
  readonly conversation: Conversation
  readonly handover: Handover
}

export function Composer({ conversation: { id }, handover: { mode, isMine, assignee } }: ComposerProps) {
  const [text, setText] = useDraft(id)
  if (mode === 'person' && !isMine)
    return (
      <Text size="sm" c="dimmed" className="desk-composer">
        {t('conversations.onlyOther', { name: assignee ?? t('conversations.person') })}
      </Text>
    )
  const isEmpty = text.trim() === ''
  const submit = () => {
    if (isEmpty) return
    send(id, text.trim(), mode === 'person')
    setText('')
  }
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key === 'Escape') event.currentTarget.blur()
    // In some languages, Enter confirms a suggestion of the input method.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    submit()
  }
  return (
    <form
      className="desk-composer"
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      <Textarea
        aria-label={t('conversations.reply')}
        placeholder={mode === 'person' ? t('conversations.writeReply') : t('conversations.writeTakesOver')}
        autosize
        minRows={2}
        maxRows={10}
        maxLength={MAX_LENGTH}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <div className="desk-composer-foot">
        <Text size="xs" c="dimmed">
          {t('conversations.enterSends')}
        </Text>
        <Button type="submit" size="xs" disabled={isEmpty}>
          {mode === 'person' ? t('conversations.send') : t('conversations.takeOverAndSend')}
        </Button>
      </div>
    </form>
  )
}

/** Stores the text in the tab, so that it survives a reload and a visit to another conversation. */
function useDraft(conversationId: string): [string, (text: string) => void] {
  const key = `parley-draft-${conversationId}`
  const [text, setText] = useState(() => readDraft(key))
  const change = (next: string) => {
    setText(next)
    try {
      if (next === '') sessionStorage.removeItem(key)
      else sessionStorage.setItem(key, next)
    } catch {
      // Without storage, only this page keeps the text.
    }
  }
  return [text, change]
}

function readDraft(key: string): string {
  try {
    return sessionStorage.getItem(key) ?? ''
  } catch {
    return ''
  }
}
