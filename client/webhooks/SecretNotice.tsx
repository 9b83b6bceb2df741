/** Rotates the secret of a webhook, and shows each new secret once. */
import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../api.ts'
import { CodeBlock } from '../components/CopyButton.tsx'
import { DialogForm } from '../components/Dialog.tsx'
import { renderMoment } from '../format.ts'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { refreshWebhooks } from './queries.ts'
import './webhooks.css'

export interface NewSecret {
  readonly secret: string
  /** Unix seconds until which deliveries are also signed with the previous secret. */
  readonly previousValidUntil?: number | null
}

interface SecretNoticeProps {
  readonly made: NewSecret
  readonly onClose: () => void
}

export function SecretNotice({ made: { secret, previousValidUntil }, onClose }: SecretNoticeProps) {
  return (
    <Stack gap="md">
      <Alert color="yellow" icon={<Icon name="warning" />} title={t('webhooks.copySecret')}>
        {t('webhooks.secretOnce')}
      </Alert>
      <div className="webhook-secret">
        <CodeBlock code={secret} what={t('webhooks.secret')} />
      </div>
      {previousValidUntil == null ? null : (
        <Text size="sm">{t('webhooks.previousUntil', { when: renderMoment(previousValidUntil) })}</Text>
      )}
      <Group justify="flex-end">
        <Button onClick={onClose}>{t('webhooks.haveCopied')}</Button>
      </Group>
    </Stack>
  )
}

interface RotateSecretProps {
  readonly id: string
  readonly onClose: () => void
}

export function RotateSecret({ id, onClose }: RotateSecretProps) {
  const queries = useQueryClient()
  const [made, setMade] = useState<NewSecret>()
  if (made !== undefined) return <SecretNotice made={made} onClose={onClose} />
  const rotate = async () => {
    const answer = await api.webhooks.rotateSecret.mutate({ webhook_id: id })
    setMade({ secret: answer.secret, previousValidUntil: answer.previous_valid_until })
    await refreshWebhooks(queries)
  }
  return (
    <DialogForm onSubmit={rotate} onCancel={onClose} action={t('webhooks.rotate')}>
      <Text size="sm">{t('webhooks.rotateHelp')}</Text>
    </DialogForm>
  )
}
