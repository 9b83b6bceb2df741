/** Keeps one from leaving with changes that are not saved. */
import { Button, Group, Stack, Text } from '@mantine/core'
import { useBlocker } from '@tanstack/react-router'
import type { RefObject } from 'react'
import { Dialog } from './Dialog.tsx'

interface LeaveGuardProps {
  /** Looked at when somebody leaves; another view of the same page is no leaving. */
  readonly isDirty: RefObject<boolean>
  /** What was changed, such as `this agent`. */
  readonly what: string
}

export function LeaveGuard({ isDirty, what }: LeaveGuardProps) {
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => isDirty.current && current.pathname !== next.pathname,
    enableBeforeUnload: () => isDirty.current,
    withResolver: true,
  })
  return (
    <Dialog
      title="Leave without saving?"
      isOpen={blocker.status === 'blocked'}
      onClose={() => blocker.reset?.()}
    >
      <Stack gap="md">
        <Text size="sm">Your changes to {what} are not saved, and would be lost.</Text>
        <Group justify="flex-end" gap="xs">
          <Button variant="default" data-autofocus onClick={() => blocker.reset?.()}>
            Stay
          </Button>
          <Button color="red.8" onClick={() => blocker.proceed?.()}>
            Leave
          </Button>
        </Group>
      </Stack>
    </Dialog>
  )
}
