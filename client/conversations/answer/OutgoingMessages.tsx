/** Shows the messages that are being sent, and those that could not be sent. */
import { Anchor } from '@mantine/core'
import { t } from '../../strings/language.ts'
import { MessageHead } from '../transcript/ItemView.tsx'
import { discard, type Outgoing, retry } from './outbox.ts'

export function OutgoingMessages({ messages }: { readonly messages: readonly Outgoing[] }) {
  if (messages.length === 0) return null
  return (
    <ul className="transcript-outgoing" aria-label={t('conversations.outgoing')}>
      {messages.map((message) => (
        <li key={message.clientId}>
          <article className="transcript-message" data-author="person" data-state={message.state}>
            <MessageHead name={t('conversations.you')} seconds={message.writtenAt} />
            <p className="transcript-text" dir="auto">
              {message.text}
            </p>
          </article>
          <OutgoingState message={message} />
        </li>
      ))}
    </ul>
  )
}

function OutgoingState({ message }: { readonly message: Outgoing }) {
  const { state, problem, isHandedBack = false } = message
  const texts = {
    sending: t('conversations.sending'),
    stored: t('conversations.sending'),
    waiting: t('conversations.notSentYet'),
    failed: isHandedBack
      ? t('conversations.notSentHandedBack')
      : t('conversations.notSent', { problem: problem ?? '' }),
  }
  return (
    <p className="transcript-state" data-state={state} role="status">
      {texts[state]}
      {state === 'sending' || state === 'stored' ? null : (
        <>
          <Anchor component="button" type="button" size="xs" onClick={() => retry(message)}>
            {isHandedBack ? t('conversations.takeOverAndSend') : t('common.tryAgain')}
          </Anchor>
          <Anchor component="button" type="button" size="xs" onClick={() => discard(message)}>
            {t('common.discard')}
          </Anchor>
        </>
      )}
    </p>
  )
}
