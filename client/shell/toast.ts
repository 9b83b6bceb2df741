/** Shows short messages at the edge of the window, some of which offer to undo an action. */
import { notifications } from '@mantine/notifications'

/** Shows that an action succeeded. */
export function showDone(message: string): void {
  notifications.show({
    message,
    color: 'green',
    withBorder: true,
    closeButtonProps: { 'aria-label': 'Close' },
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
    closeButtonProps: { 'aria-label': 'Close' },
  })
}
