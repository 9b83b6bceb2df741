/** Shows the attachments in messages and in the input, where each one has a remove button. */
import { useEffect, useRef, useState } from 'react'
import type { Attachment } from '../attachments/attachments.ts'
import type { Attachments } from '../attachments/use-attachments.ts'
import { useFrame } from '../frame-context.ts'
import { fill } from '../strings/strings.ts'
import { AttachIcon, CloseIcon, FileIcon } from './icons.tsx'
import { Picture } from './Picture.tsx'

/** Lists the attachments of the message that the visitor writes. */
export function ChosenAttachments({ chosen }: { chosen: Attachments }) {
  const { strings } = useFrame().language
  const { View, transfers, pause, resume, remove } = chosen.uploads
  return (
    <>
      {chosen.list.length > 0 && (
        <ul className="attachments" aria-label={strings.attachments}>
          {chosen.list.map((one) => {
            const label = fill(strings.removeAttachment, { name: one.name ?? strings.picture })
            return (
              <li key={one.id} className="attachment">
                <Shown attachment={one} data={one.data} />
                <button
                  type="button"
                  className="detach"
                  aria-label={label}
                  title={label}
                  onClick={() => chosen.remove(one.id)}
                >
                  <CloseIcon />
                </button>
              </li>
            )
          })}
        </ul>
      )}
      {View !== undefined && (
        <View transfers={transfers} onPause={pause} onResume={resume} onRemove={remove} />
      )}
      {chosen.problem !== undefined && (
        <p className="offline" role="alert">
          {chosen.problem}
        </p>
      )}
    </>
  )
}

/** Opens the device's file chooser, which offers the camera on phones. */
export function AttachButton({ chosen }: { chosen: Attachments }) {
  const { agent, language } = useFrame()
  const input = useRef<HTMLInputElement>(null)
  const { types = [], uploads } = agent?.attachments ?? {}
  const extensions = uploads?.extensions ?? []
  if (types.length + extensions.length === 0) return null
  const { attach } = language.strings
  return (
    <>
      <button
        type="button"
        className="action"
        aria-label={attach}
        title={attach}
        onClick={() => input.current?.click()}
      >
        <AttachIcon />
      </button>
      <input
        ref={input}
        type="file"
        hidden
        multiple
        accept={[...types.map((type) => accepted[type]), ...extensions.map((one) => `.${one}`)].join(',')}
        onChange={({ currentTarget }) => {
          chosen.add([...(currentTarget.files ?? [])])
          // Lets the visitor choose the same file again.
          currentTarget.value = ''
        }}
      />
    </>
  )
}

const accepted = { image: 'image/*', pdf: 'application/pdf', text: 'text/*,.md,.csv,.json,.log,.yaml,.yml' }

export function SentAttachments({ attachments }: { attachments: readonly Attachment[] }) {
  const { strings } = useFrame().language
  return (
    <ul className="attachments sent" aria-label={strings.attachments}>
      {attachments.map((one) => (
        <li key={one.id} className="attachment">
          <Sent attachment={one} />
        </li>
      ))}
    </ul>
  )
}

/** Reads an image from the server if the browser does not have it. */
function Sent({ attachment }: { attachment: Attachment }) {
  const { session } = useFrame()
  const [read, setRead] = useState<string>()
  const { type, data, stored } = attachment
  useEffect(() => {
    if (type !== 'image' || data !== undefined || stored === undefined) return
    let isGone = false
    session.stored.readAttachment(stored.item, stored.part).then(
      (text) => isGone || setRead(text),
      // If the image cannot be read, only its name is shown.
      () => {},
    )
    return () => {
      isGone = true
    }
  }, [session, type, data, stored])
  const shown = data ?? read
  if (isImage(attachment, shown)) return <Picture source={shown} name="" />
  return <Shown attachment={attachment} data={shown} />
}

function isImage({ type }: Attachment, data: string | undefined): data is string {
  return type === 'image' && data?.startsWith('data:image/') === true
}

function Shown({ attachment, data }: { attachment: Attachment; data: string | undefined }) {
  const { strings } = useFrame().language
  const { name } = attachment
  if (isImage(attachment, data)) return <img src={data} alt={strings.picture} />
  return (
    <span className="file">
      <FileIcon />
      <span dir="auto">{name ?? strings.picture}</span>
    </span>
  )
}
