/** Asks before something is done that cannot be undone; what matters most has to be typed. */
import { Code, Text, TextInput } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { Dialog } from './Dialog.tsx'
import { DialogForm } from './DialogForm.tsx'

export interface ConfirmDialogProps {
  readonly title: string
  readonly isOpen: boolean
  readonly onClose: () => void
  /** Resolves when it is done; a failure is shown, and the dialog stays. */
  readonly onConfirm: () => Promise<unknown>
  /** On the button. */
  readonly action: string
  readonly isDangerous?: boolean
  /** What has to be typed first. */
  readonly typed?: string
  readonly children: ReactNode
}

export function ConfirmDialog(props: ConfirmDialogProps) {
  return (
    <Dialog title={props.title} isOpen={props.isOpen} onClose={props.onClose}>
      <ConfirmForm {...props} />
    </Dialog>
  )
}

/** Lives as long as the dialog is open, so what was typed is gone the next time. */
function ConfirmForm({ onClose, onConfirm, action, isDangerous, typed, children }: ConfirmDialogProps) {
  const [text, setText] = useState('')
  const confirm = async () => {
    await onConfirm()
    onClose()
  }
  return (
    <DialogForm
      onSubmit={confirm}
      onCancel={onClose}
      action={action}
      isReady={typed === undefined || text === typed}
      isDangerous={isDangerous}
    >
      <Text size="sm" component="div">
        {children}
      </Text>
      {typed === undefined ? null : (
        <TextInput
          label={
            <>
              Type <Code>{typed}</Code> to go on
            </>
          }
          data-autofocus
          value={text}
          autoComplete="off"
          onChange={(event) => setText(event.currentTarget.value)}
        />
      )}
    </DialogForm>
  )
}
