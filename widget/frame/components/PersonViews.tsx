/** Shows messages of people, and changes of who answers. */
import { Fragment, memo } from 'react'
import { type ConversationNote, noteText, type PersonMessage, personSaid } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { Link } from '../markdown/components.tsx'
import { CopyButton } from './ActionButton.tsx'
import { PersonIcon } from './icons.tsx'
import { Time } from './Time.tsx'

/** Shows the person's initial, or an icon if the name is not shown. */
export function PersonFace({ name }: { name: string | null }) {
  const [initial] = name ?? ''
  return (
    <span className="person-face" aria-hidden="true">
      {initial?.toLocaleUpperCase() ?? <PersonIcon />}
    </span>
  )
}

export const PersonMessageView = memo(function PersonMessageView({ entry }: { entry: PersonMessage }) {
  const { language } = useFrame()
  const { people, copyMessage } = language.strings
  const { name, text, atMs } = entry
  return (
    <article className="entry person">
      <h2 className="unseen">{personSaid(entry, language)}</h2>
      <p className="person-name" aria-hidden="true">
        <PersonFace name={name} />
        <bdi>{name ?? people.unnamed}</bdi>
      </p>
      <div className="bubble" dir="auto">
        <LinkedText text={text} />
      </div>
      <div className="actions">
        <CopyButton text={text} name={copyMessage} />
        <Time atMs={atMs} />
      </div>
    </article>
  )
})

const address = /(https?:\/\/[^\s<>"']*[^\s<>"'.,:;!?)\]}])/

/** Shows plain text whose web addresses are links. */
function LinkedText({ text }: { text: string }) {
  return text.split(address).map((part, index) => {
    const key = `${index} ${part}`
    if (index % 2 === 0) return <Fragment key={key}>{part}</Fragment>
    return (
      <Link key={key} address={part} text={part}>
        {part}
      </Link>
    )
  })
}

export const NoteView = memo(function NoteView({ entry }: { entry: ConversationNote }) {
  const { language } = useFrame()
  const isText = entry.note.mode === undefined
  return (
    <p className="entry note" data-mode={entry.note.mode} dir={isText ? 'auto' : undefined}>
      <span>{noteText(entry, language)}</span> {!isText && <Time atMs={entry.atMs} />}
    </p>
  )
})
