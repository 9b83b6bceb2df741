/** Shows an image that the visitor can enlarge. */
import { useState } from 'react'
import { useFrame } from '../frame-context.ts'
import { fill } from '../strings/strings.ts'
import { OnDemand } from './OnDemand.tsx'

interface Props {
  /** An address that the frame's policy allows. */
  readonly source: string
  /** Describes the image; may be empty. */
  readonly name: string
  readonly onFailure?: () => void
}

export function Picture({ source, name, onFailure }: Props) {
  const { strings } = useFrame().language
  const [isOpen, setIsOpen] = useState(false)
  const label = fill(strings.enlarge, { name: name || strings.picture })
  const close = () => setIsOpen(false)
  return (
    <>
      <button
        type="button"
        className="picture"
        aria-label={label}
        title={label}
        onClick={() => setIsOpen(true)}
      >
        <Remote source={source} name="" onFailure={onFailure} />
      </button>
      {isOpen && <OnDemand load={loadViewer} props={{ source, name, onClose: close }} onFailure={close} />}
    </>
  )
}

/** Shows an image without sending the page's address to its host. */
export function Remote({ source, name, onFailure }: Props) {
  return <img src={source} alt={name} loading="lazy" referrerPolicy="no-referrer" onError={onFailure} />
}

async function loadViewer() {
  return (await import('./PictureViewer.tsx')).PictureViewer
}
