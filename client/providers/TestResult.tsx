/** Shows the result of a provider's test: its latency and models, or the problem. */
import { Alert, Text } from '@mantine/core'
import { Icon } from '../shell/icons.tsx'
import type { ProviderTestResult } from './queries.ts'

export function TestResult({ result }: { readonly result: ProviderTestResult }) {
  const { ok, problem, models, model_count: count, latency_ms: latencyMs } = result
  if (!ok) {
    return (
      <Alert color="red" role="alert" icon={<Icon name="warning" />} title="Test failed">
        {problem}
      </Alert>
    )
  }
  const rest = count - models.length
  return (
    <div className="test-result" role="status" aria-label="Test result">
      <Text size="sm" fw={500} className="test-summary">
        <Icon name="check" size={16} />
        Connected: {count === 1 ? '1 model' : `${count} models`} in {latencyMs} ms
      </Text>
      {count === 0 ? (
        <Text size="sm" c="dimmed">
          The provider lists no models yet. Add one to it, then test again.
        </Text>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
        <section className="test-models" aria-label="Models" tabIndex={0}>
          <ul>
            {models.map(({ id, chats }) => (
              <li key={id}>
                <code>{id}</code>
                {chats ? null : (
                  <Text span size="xs" c="dimmed">
                    Embeddings
                  </Text>
                )}
              </li>
            ))}
          </ul>
          {rest === 0 ? null : (
            <Text size="xs" c="dimmed">
              and {rest} more
            </Text>
          )}
        </section>
      )}
    </div>
  )
}
