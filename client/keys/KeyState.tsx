/** Shows that a parent key is revoked, disabled or expired. */
import { Text } from '@mantine/core'
import { Ago } from '../components/text.tsx'
import { rich } from '../strings/rich.tsx'

interface KeyStateProps {
  readonly revoked_at?: number | null
  readonly disabled_at: number | null
  readonly expires_at: number | null
}

export function KeyState({ revoked_at = null, disabled_at, expires_at }: KeyStateProps) {
  const hasExpired = expires_at !== null && expires_at * 1000 <= Date.now()
  const states = [
    ['keys.revoked', revoked_at],
    ['keys.disabled', disabled_at],
    ['keys.expired', hasExpired ? expires_at : null],
  ] as const
  const [name, since = null] = states.find(([, at]) => at !== null) ?? []
  if (since === null || name === undefined) return null
  return (
    <Text span size="xs" c="var(--bad)">
      {rich(name, { when: <Ago seconds={since} /> })}
    </Text>
  )
}
