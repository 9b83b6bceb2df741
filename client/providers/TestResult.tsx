/** Shows the result of a provider's test: its latency and models, or the problem. */

import { Alert, Text } from '@mantine/core'
import { renderMilliseconds } from '../format.ts'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import type { ProviderTestResult } from './queries.ts'

export function TestResult({ result }: { readonly result: ProviderTestResult }) {
  const { ok, problem, models, model_count: count, latency_ms: latencyMs } = result
  if (!ok) {
    return (
      <Alert color="red" role="alert" icon={<Icon name="warning" />} title={t('providers.testFailed')}>
        {problem}
      </Alert>
    )
  }
  const rest = count - models.length
  return (
    <div className="test-result" role="status" aria-label={t('providers.testResult')}>
      <Text size="sm" fw={500} className="test-summary">
        <Icon name="check" size={16} />
        {t('providers.connected', { count, time: renderMilliseconds(latencyMs) })}
      </Text>
      {count === 0 ? (
        <Text size="sm" c="dimmed">
          {t('providers.noModels')}
        </Text>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
        <section className="test-models" aria-label={t('providers.models')} tabIndex={0}>
          <ul>
            {models.map(({ id, chats }) => (
              <li key={id}>
                <code>{id}</code>
                {chats ? null : (
                  <Text span size="xs" c="dimmed">
                    {t('providers.embeddings')}
                  </Text>
                )}
              </li>
            ))}
          </ul>
          {rest === 0 ? null : (
            <Text size="xs" c="dimmed">
              {t('providers.andMore', { number: rest })}
            </Text>
          )}
        </section>
      )}
    </div>
  )
}
