/** Shows that a parent key is revoked, disabled or expired. */
import { Text } from '@mantine/core'
import { Ago } from '../components/text.tsx'

interface KeyStateProps {
  readonly revoked_at?: number | null
  readonly disabled_at: number | null
  readonly expires_at: number | null
}

export function KeyState({ revoked_at = null, disabled_at, expires_at }: KeyStateProps) {
  const hasExpired = expires_at !== null && expires_at * 1000 <= Date.now()
  const states = [
    ['Revoked', revoked_at],
    ['Disabled', disabled_at],
    ['Expired', hasExpired ? expires_at : null],
  ] as const
  const [name, since = null] = states.find(([, at]) => at !== null) ?? []
  if (since === null) return null
  return (
    <Text span size="xs" c="var(--bad)">
      {name} <Ago seconds={since} />
    </Text>
  )
}
