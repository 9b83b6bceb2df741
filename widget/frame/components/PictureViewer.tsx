/** Shows one image in a dialog that covers the window. */
import { useRef } from 'react'
import { useFrame } from '../frame-context.ts'
import { CloseIcon } from './icons.tsx'
import { useModal } from './use-modal.ts'

interface Props {
  readonly source: string
  readonly name: string
  readonly onClose: () => void
}

export function PictureViewer({ source, name, onClose }: Props) {
  const { strings } = useFrame().language
  const dialog = useRef<HTMLDialogElement>(null)
  useModal(dialog)
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the button and Escape do the same
    <dialog
      ref={dialog}
      className="viewer"
      aria-label={name || strings.picture}
      onClick={onClose}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      <button
        type="button"
        className="plain-button"
        aria-label={strings.closePicture}
        title={strings.closePicture}
      >
        <CloseIcon />
      </button>
      <img src={source} alt={name || strings.picture} referrerPolicy="no-referrer" />
    </dialog>
  )
}
