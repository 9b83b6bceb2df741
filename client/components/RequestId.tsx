/** Shows the id of a failed request, with which an operator can find it in the server's log. */
import { Code, Group, Text } from '@mantine/core'
import { toFailure } from '../failure.ts'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import { CopyButton } from './CopyButton.tsx'

/** Shows nothing if the failure has no request id, for example because there was no response. */
export function RequestId({ error }: { readonly error: unknown }) {
  const { requestId } = toFailure(error)
  if (requestId === undefined) return null
  return (
    <Group gap="xs" mt="xs">
      <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
        {rich('common.requestId', { id: <Code fz="inherit">{requestId}</Code> })}
      </Text>
      <CopyButton text={requestId} what={t('common.requestIdName')} />
    </Group>
  )
}
