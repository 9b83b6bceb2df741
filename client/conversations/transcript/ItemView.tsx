/** Shows one item of a conversation: a message, a tool call, a reasoning text or a change of who answers. */
import { Code, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { Markdown } from '../../components/Markdown.tsx'
import { ClockTime } from '../../components/text.tsx'
import { Icon } from '../../shell/icons.tsx'
import { t } from '../../strings/language.ts'
import type { Item } from '../queries.ts'
import { attachmentsOf, prettify, textOf } from './entries.ts'

interface ItemProps {
  readonly item: Item
  readonly result: Item | undefined
  /** Whether a search has found the message. */
  readonly isMatch: boolean
}

export function ItemView({ item, result, isMatch }: ItemProps) {
  if (item.parley?.mode !== undefined) return <ModeChange item={item} />
  if (item.parley?.replacement !== undefined) return <ReplacementNote item={item} />
  if (item.type === 'message') return <Message item={item} isMatch={isMatch} />
  if (item.type === 'function_call') {
    const name = String(item.name)
    return (
      <Fold label={name} icon="tool">
        <Data
          label={t('conversations.argumentsOf', { name })}
          heading={t('conversations.arguments')}
          text={textOf(item.arguments)}
        />
        <Data
          label={t('conversations.resultOf', { name })}
          heading={t('conversations.result')}
          text={textOf(result?.output)}
        />
      </Fold>
    )
  }
  if (item.type === 'function_call_output')
    return (
      <Fold label={t('conversations.toolResult')} icon="tool">
        <Data
          label={t('conversations.toolResult')}
          heading={t('conversations.result')}
          text={textOf(item.output)}
        />
      </Fold>
    )
  const thought = [textOf(item.summary), textOf(item.content)].filter((text) => text !== '').join('\n')
  return thought === '' ? null : (
    <Fold label={t('conversations.reasoning')} icon="dots">
      <p className="transcript-text" dir="auto">
        {thought}
      </p>
    </Fold>
  )
}

function ModeChange({ item: { parley } }: Pick<ItemProps, 'item'>) {
  if (parley === undefined) return null
  const { mode, assignee, reason, created_at: at } = parley
  const texts = {
    waiting: t('conversations.personWanted'),
    person: t('conversations.tookOver', { name: assignee ?? t('conversations.person') }),
    model: t('conversations.modelAnswersAgain'),
  }
  return (
    <p className="transcript-change" data-mode={mode}>
      <span>{texts[mode ?? 'model']}</span>
      {reason == null ? null : <bdi className="transcript-reason">{reason}</bdi>}
      <ClockTime seconds={at} />
    </p>
  )
}

const replacements = {
  edited: t('conversations.editedMessage'),
  regenerated: t('conversations.otherAnswer'),
  removed: t('conversations.removedMessage'),
} as const

/** States that the visitor changed or removed a message, or requested another answer. */
function ReplacementNote({ item: { parley } }: Pick<ItemProps, 'item'>) {
  if (parley?.replacement === undefined) return null
  return (
    <p className="transcript-change">
      <span>{replacements[parley.replacement.how]}</span>
      <ClockTime seconds={parley.created_at} />
    </p>
  )
}

const speakers: Readonly<Record<string, string>> = {
  visitor: t('conversations.visitor'),
  model: t('conversations.model'),
  person: t('conversations.person'),
  page: t('conversations.client'),
  tool: t('conversations.tool'),
  service: 'Parley',
}

/** Shows a visitor's text as plain text, and an answer as Markdown. */
function Message({ item, isMatch }: Pick<ItemProps, 'item' | 'isMatch'>) {
  const author = item.parley?.author ?? 'model'
  const role = String(item.role)
  const speaker = author === 'page' ? t('conversations.clientRole', { role }) : (speakers[author] ?? author)
  const text = textOf(item.content)
  const attachments = attachmentsOf(item.content)
  return (
    <article
      className="transcript-message"
      data-author={author}
      data-item={item.id}
      data-match={isMatch || undefined}
      // The page moves the focus to the message, so that screen readers continue there.
      tabIndex={isMatch ? -1 : undefined}
    >
      {isMatch ? <p className="transcript-match">{t('conversations.searchHit')}</p> : null}
      <MessageHead name={item.parley?.name ?? speaker} seconds={item.parley?.created_at} />
      {text === '' && attachments.length === 0 ? <em>{t('conversations.noText')}</em> : null}
      {text === '' ? null : author === 'model' ? (
        <Markdown text={text} />
      ) : (
        <p className="transcript-text" dir="auto">
          {text}
        </p>
      )}
      {attachments.map((attachment) => (
        <AttachmentView key={attachment.part} {...attachment} />
      ))}
    </article>
  )
}

interface MessageHeadProps {
  readonly name: string
  readonly seconds: number | undefined
  /** Replaces the time. */
  readonly children?: ReactNode
}

export function MessageHead({ name, seconds, children }: MessageHeadProps) {
  return (
    <header className="transcript-head">
      <bdi>{name}</bdi>
      {seconds === undefined ? children : <ClockTime seconds={seconds} />}
    </header>
  )
}

/** Shows an answer while the model writes it. */
export function LiveMessage({ text }: { readonly text: string }) {
  return (
    <article className="transcript-message" data-author="model" aria-busy="true">
      <MessageHead name={t('conversations.model')} seconds={undefined}>
        <span role="status">{t('conversations.answering')}</span>
      </MessageHead>
      {text === '' ? null : <Markdown text={text} />}
    </article>
  )
}

function AttachmentView({ kind, name, detail, address, text }: ReturnType<typeof attachmentsOf>[number]) {
  if (kind === 'image' && address !== undefined)
    return (
      <a href={address} download={name} className="transcript-image">
        <img src={address} alt={name} />
      </a>
    )
  if (text !== undefined)
    return (
      <Fold label={name} icon="files">
        <Data label={name} heading={t('conversations.attachedText')} text={text} />
      </Fold>
    )
  return address === undefined ? (
    <p className="transcript-file">
      <Icon name="files" size={14} />
      <bdi>{name}</bdi>
    </p>
  ) : (
    <a href={address} download={name} className="transcript-file">
      <Icon name="download" size={14} />
      <bdi>{name}</bdi>
      {detail}
    </a>
  )
}

interface FoldProps {
  readonly label: string
  readonly icon: 'tool' | 'dots' | 'files'
  readonly children: ReactNode
}

function Fold({ label, icon, children }: FoldProps) {
  return (
    <details className="transcript-fold">
      <summary>
        <Icon name={icon} size={14} />
        <bdi>{label}</bdi>
      </summary>
      <div className="transcript-fold-body">{children}</div>
    </details>
  )
}

interface DataProps {
  readonly label: string
  readonly heading: string
  readonly text: string
}

function Data({ label, heading, text }: DataProps) {
  return (
    <>
      <Text size="xs" c="dimmed">
        {heading}
      </Text>
      {text === '' ? (
        <Text size="sm" c="dimmed">
          {t('conversations.notStored')}
        </Text>
      ) : (
        <Code block tabIndex={0} className="transcript-code" aria-label={label} role="region">
          {prettify(text)}
        </Code>
      )}
    </>
  )
}
