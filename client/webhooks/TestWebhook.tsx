/** Sends a test event when it is shown, and shows the result. */
import { Alert, Button, Group, Skeleton, Stack, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '../api.ts'
import { Failed } from '../components/QueryStates.tsx'
import { renderMilliseconds } from '../format.ts'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { refreshWebhooks, type TestResult } from './queries.ts'

interface TestWebhookProps {
  readonly id: string
  readonly onClose: () => void
}

export function TestWebhook({ id, onClose }: TestWebhookProps) {
  const queries = useQueryClient()
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['webhook-test', id],
    queryFn: async () => {
      const result = await api.webhooks.test.mutate({ webhook_id: id })
      void refreshWebhooks(queries)
      return result
    },
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnReconnect: false,
    retry: false,
  })
  return (
    <Stack gap="md">
      {isFetching ? (
        <div role="status" aria-label={t('webhooks.testing')} aria-busy="true">
          <Skeleton height={72} radius="md" />
        </div>
      ) : null}
      {!isFetching && error !== null ? (
        <Failed error={error} what="testResult" retry={() => void refetch()} />
      ) : null}
      {!isFetching && data !== undefined ? <Result {...data} /> : null}
      <Group justify="flex-end" gap="xs">
        <Button variant="default" loading={isFetching} onClick={() => void refetch()}>
          {t('webhooks.testAgain')}
        </Button>
        <Button onClick={onClose}>{t('common.done')}</Button>
      </Group>
    </Stack>
  )
}

function Result({ state, last_status: status, last_error: problem, duration_ms: ms }: TestResult) {
  const time = renderMilliseconds(ms)
  if (state === 'delivered')
    return (
      <Alert
        color="green"
        role="status"
        icon={<Icon name="check" />}
        title={t('webhooks.testSucceeded', { time })}
      >
        <Text size="sm">{t('webhooks.testStatus', { status: String(status) })}</Text>
      </Alert>
    )
  return (
    <Alert color="red" role="alert" icon={<Icon name="warning" />} title={t('webhooks.testFailed', { time })}>
      <Text size="sm">{problem}</Text>
    </Alert>
  )
}
