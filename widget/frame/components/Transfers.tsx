/** Shows the progress of uploads, with buttons to pause, continue, repeat and remove them. */
import type { Transfer } from '../attachments/uploader.ts'
import { useFrame } from '../frame-context.ts'
import { fill } from '../strings/strings.ts'
import { CloseIcon, ForwardIcon, PauseIcon, RetryIcon } from './icons.tsx'

export interface TransfersProps {
  readonly transfers: readonly Transfer[]
  readonly onPause: (id: string) => void
  readonly onResume: (id: string) => void
  readonly onRemove: (id: string) => void
}

export function Transfers({ transfers, ...actions }: TransfersProps) {
  const { strings } = useFrame().language
  if (transfers.length === 0) return null
  return (
    <ul className="transfers" aria-label={strings.uploads}>
      {transfers.map((transfer) => (
        <TransferView key={transfer.id} transfer={transfer} {...actions} />
      ))}
    </ul>
  )
}

type ViewProps = Omit<TransfersProps, 'transfers'> & { readonly transfer: Transfer }

function TransferView({ transfer, onPause, onResume, onRemove }: ViewProps) {
  const { strings, tag } = useFrame().language
  const { id, name, share, state } = transfer
  const percent = new Intl.NumberFormat(tag, { style: 'percent' }).format(share)
  const states = {
    uploading: percent,
    paused: strings.uploadPaused,
    interrupted: strings.uploadInterrupted,
    failed: strings.uploadFailed,
    limited: strings.uploadLimited,
  }
  const isUploading = state === 'uploading'
  const action = isUploading
    ? strings.pauseUpload
    : state === 'paused'
      ? strings.resumeUpload
      : strings.retryUpload
  const Icon = isUploading ? PauseIcon : state === 'paused' ? ForwardIcon : RetryIcon
  const label = fill(action, { name })
  const removal = fill(strings.removeAttachment, { name })
  return (
    <li className="transfer" data-state={state}>
      <span className="transfer-name" dir="auto">
        {name}
      </span>
      {/* A screen reader reads the changes of the state, but not each percentage. */}
      <span className="transfer-state" role={isUploading ? undefined : 'status'}>
        {states[state]}
      </span>
      <progress value={share} aria-label={fill(strings.uploading, { name })}>
        {percent}
      </progress>
      {/* One button for all states, so that it keeps the focus. */}
      <button
        type="button"
        className="action"
        aria-label={label}
        title={label}
        onClick={() => (isUploading ? onPause(id) : onResume(id))}
      >
        <Icon />
      </button>
      <button
        type="button"
        className="action"
        aria-label={removal}
        title={removal}
        onClick={() => onRemove(id)}
      >
        <CloseIcon />
      </button>
    </li>
  )
}
