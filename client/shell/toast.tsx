/** Shows short messages at the edge of the window, some of which offer to undo an action. */
import { Button, Group } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { t } from '../strings/language.ts'

/** Shows that an action succeeded. */
export function showDone(message: string): void {
  notifications.show({
    message,
    color: 'green',
    withBorder: true,
    closeButtonProps: { 'aria-label': t('common.close') },
  })
}

/** Shows why an action failed; does nothing without a message. */
export function showProblem(message: string | undefined): void {
  if (message === undefined) return
  notifications.show({
    message,
    color: 'red',
    withBorder: true,
    autoClose: false,
    closeButtonProps: { 'aria-label': t('common.close') },
  })
}

/** Time to undo an action, in milliseconds. */
const UNDO_MS = 10_000

/** Shows that an action succeeded, with a button that undoes it. */
export function showUndo(message: string, undo: () => Promise<unknown>): void {
  const id = notifications.show({
    message: (
      <Group justify="space-between" wrap="nowrap">
        {message}
        <Button
          variant="default"
          size="xs"
          onClick={() => {
            notifications.hide(id)
            void undo()
          }}
        >
          {t('common.undo')}
        </Button>
      </Group>
    ),
    color: 'green',
    withBorder: true,
    autoClose: UNDO_MS,
    closeButtonProps: { 'aria-label': t('common.close') },
  })
}
