/** Shows the dialogs for one webhook, and the menu items that open them. */
import { Menu } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api } from '../api.ts'
import { ConfirmDialog, Dialog } from '../components/Dialog.tsx'
import { problemOf } from '../failure.ts'
import { showDone, showProblem } from '../shell/toast.tsx'
import { useMe } from '../shell/use-me.ts'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import { refreshWebhooks, setEnabled, type Webhook } from './queries.ts'
import { RotateSecret } from './SecretNotice.tsx'
import { TestWebhook } from './TestWebhook.tsx'
import { EditWebhook } from './WebhookForm.tsx'

export interface Doing {
  readonly what: 'test' | 'edit' | 'rotate' | 'delete'
  readonly webhook: Webhook
}

interface WebhookMenuItemsProps {
  readonly webhook: Webhook
  readonly setDoing: (doing: Doing) => void
}

export function WebhookMenuItems({ webhook, setDoing }: WebhookMenuItemsProps) {
  const queries = useQueryClient()
  const { is_administrator: isAdministrator } = useMe()
  const isEnabled = webhook.state === 'enabled'
  const toggle = async () => {
    await setEnabled(queries, webhook, !isEnabled)
    showDone(isEnabled ? t('webhooks.disabledNow') : t('webhooks.enabledNow'))
  }
  return (
    <>
      <Menu.Item onClick={() => setDoing({ what: 'test', webhook })}>{t('webhooks.test')}</Menu.Item>
      <Menu.Item onClick={() => setDoing({ what: 'edit', webhook })}>{t('providers.editMenu')}</Menu.Item>
      <Menu.Item onClick={() => setDoing({ what: 'rotate', webhook })}>{t('webhooks.rotateMenu')}</Menu.Item>
      <Menu.Item onClick={() => void toggle().catch((thrown) => showProblem(problemOf(thrown)))}>
        {isEnabled ? t('webhooks.disable') : t('webhooks.enable')}
      </Menu.Item>
      {isAdministrator ? (
        <Menu.Item
          renderRoot={(props) => (
            <Link to="/admin" search={{ tab: 'audit', target: webhook.id }} {...props} />
          )}
        >
          {t('admin.viewAuditLog')}
        </Menu.Item>
      ) : null}
      <Menu.Item className="danger-text" onClick={() => setDoing({ what: 'delete', webhook })}>
        {t('conversations.deleteMenu')}
      </Menu.Item>
    </>
  )
}

interface WebhookDialogsProps {
  readonly doing: Doing | undefined
  readonly onClose: () => void
  /** Called before the lists are loaded again. */
  readonly onDeleted?: () => Promise<void>
}

export function WebhookDialogs({ doing, onClose, onDeleted }: WebhookDialogsProps) {
  const queries = useQueryClient()
  const { what, webhook } = doing ?? {}
  const remove = async (id: string) => {
    await api.webhooks.delete.mutate({ webhook_id: id })
    await onDeleted?.()
    queries.removeQueries({ queryKey: ['webhooks', 'one', id] })
    await refreshWebhooks(queries)
    showDone(t('webhooks.deleted'))
  }
  return (
    <>
      <Dialog title={t('webhooks.test')} isOpen={what === 'test'} onClose={onClose}>
        {webhook === undefined ? null : <TestWebhook id={webhook.id} onClose={onClose} />}
      </Dialog>
      <Dialog title={t('webhooks.edit')} isOpen={what === 'edit'} onClose={onClose} size="lg">
        {webhook === undefined ? null : <EditWebhook webhook={webhook} onClose={onClose} />}
      </Dialog>
      <Dialog title={t('webhooks.rotate')} isOpen={what === 'rotate'} onClose={onClose}>
        {webhook === undefined ? null : <RotateSecret id={webhook.id} onClose={onClose} />}
      </Dialog>
      <ConfirmDialog
        title={t('webhooks.delete')}
        isOpen={what === 'delete'}
        onClose={onClose}
        onConfirm={() => remove(webhook?.id ?? '')}
        action={t('webhooks.delete')}
        isDangerous
      >
        {rich('webhooks.deleteLoss', { url: <bdi className="webhook-url">{webhook?.url}</bdi> })}
      </ConfirmDialog>
    </>
  )
}
