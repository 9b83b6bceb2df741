/** Shows whether a webhook delivers events and, if not, why. */
import { Stack, Text } from '@mantine/core'
import { Status } from '../components/Status.tsx'
import { Ago } from '../components/text.tsx'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import type { Webhook } from './queries.ts'

export function WebhookState({ state, disabled_reason: reason, failing_since: since }: Webhook) {
  if (state === 'disabled')
    return (
      <Stack gap={2} className="webhook-state">
        <Status tone={reason === 'owner' ? 'quiet' : 'bad'}>{t('webhooks.disabled')}</Status>
        {reason === null ? null : (
          <Text span size="xs" c="dimmed">
            {t(`webhooks.why.${reason}`)}
          </Text>
        )}
      </Stack>
    )
  if (since === null) return <Status tone="good">{t('webhooks.active')}</Status>
  return (
    <Stack gap={2} className="webhook-state">
      <Status tone="warn">{t('webhooks.failing')}</Status>
      <Text span size="xs" c="dimmed">
        {rich('webhooks.failingSince', { when: <Ago seconds={since} /> })}
      </Text>
    </Stack>
  )
}
