/** Says that the browser has no connection, for as long as it has none. */
import { Group, Text } from '@mantine/core'
import { useNetwork } from '@mantine/hooks'
import { Icon } from './icons.tsx'

export function OfflineNotice() {
  const { online } = useNetwork()
  if (online) return null
  return (
    <Group role="status" gap="xs" justify="center" p={6} className="offline-notice">
      <Icon name="offline" size={16} />
      <Text size="sm">You are offline. What you see may be old, and nothing can be saved.</Text>
    </Group>
  )
}
