/** Asks before something is done that cannot be undone; what matters most has to be typed. */
import { Alert, Button, Code, Group, Stack, Text, TextInput } from '@mantine/core'
import { type FormEvent, type ReactNode, useState } from 'react'
import { toFailure } from '../failure.ts'
import { Dialog } from './Dialog.tsx'

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
  const [problem, setProblem] = useState<string>()
  const [isBusy, setIsBusy] = useState(false)
  const isReady = typed === undefined || text === typed

  async function confirm(event: FormEvent): Promise<void> {
    event.preventDefault()
    setIsBusy(true)
    try {
      await onConfirm()
      onClose()
    } catch (thrown) {
      setProblem(toFailure(thrown).message)
    } finally {
      setIsBusy(false)
    }
  }

  return (
    <form onSubmit={(event) => void confirm(event)}>
      <Stack gap="md">
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
        {problem === undefined ? null : (
          <Alert color="red" role="alert">
            {problem}
          </Alert>
        )}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button
            type="submit"
            color={isDangerous ? 'red.8' : undefined}
            disabled={!isReady}
            loading={isBusy}
          >
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
