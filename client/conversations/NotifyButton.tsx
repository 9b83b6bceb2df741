/** Turns desktop notifications of waiting conversations on and off. */
import { ActionIcon } from '@mantine/core'
import { Icon } from '../shell/icons.tsx'
import { useNotifications } from '../shell/notifications.ts'
import { showDone, showProblem } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'

export function NotifyButton() {
  const { state, toggle } = useNotifications()
  if (state === 'unsupported') return null
  const press = async () => {
    if (state === 'blocked') return showProblem(t('conversations.notificationsBlocked'))
    const next = await toggle()
    if (next === 'on') showDone(t('conversations.notificationsOn'))
    if (next === 'blocked') showProblem(t('conversations.notificationsBlocked'))
    if (next === 'unsupported') showProblem(t('conversations.notificationsUnsupported'))
  }
  const isOn = state === 'on'
  return (
    <ActionIcon
      variant={isOn ? 'light' : 'subtle'}
      color={isOn ? undefined : 'gray'}
      size="lg"
      aria-pressed={isOn}
      aria-label={t('conversations.notify')}
      title={isOn ? t('conversations.stopNotifying') : t('conversations.notify')}
      onClick={() => void press()}
    >
      <Icon name="bell" />
    </ActionIcon>
  )
}
