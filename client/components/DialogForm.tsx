/** The form of a dialog in which something is filled in and sent: what the server refuses is shown, and the dialog stays. */
import { Alert, Button, Group, Stack } from '@mantine/core'
import { type FormEvent, type ReactNode, useState } from 'react'
import { problemOf } from '../failure.ts'

export interface FormProps {
  readonly onSubmit: () => Promise<unknown>
  readonly onCancel: () => void
  /** On the button. */
  readonly action: string
  readonly isReady?: boolean
  readonly isDangerous?: boolean | undefined
  readonly children: ReactNode
}

/** Goes inside a `Dialog`. */
export function DialogForm({ onSubmit, onCancel, action, isReady = true, isDangerous, children }: FormProps) {
  const [problem, setProblem] = useState<string>()
  const [isBusy, setIsBusy] = useState(false)

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault()
    setIsBusy(true)
    setProblem(undefined)
    try {
      await onSubmit()
    } catch (thrown) {
      setProblem(problemOf(thrown))
    } finally {
      setIsBusy(false)
    }
  }

  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack gap="md">
        {children}
        {problem === undefined ? null : (
          <Alert color="red" role="alert">
            {problem}
          </Alert>
        )}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onCancel}>
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
