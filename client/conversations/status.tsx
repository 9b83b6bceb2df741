/** Shows the status of a turn. */
import { Group, Text } from '@mantine/core'
import type { Turn } from './queries.ts'

type Status = Turn['status']

const statusNames: Readonly<Record<Status, string>> = {
  queued: 'Queued',
  in_progress: 'Running',
  completed: 'Completed',
  incomplete: 'Incomplete',
  failed: 'Failed',
  cancelled: 'Cancelled',
}

export function StatusLabel({ status }: { readonly status: Status | null | undefined }) {
  if (status == null) return '–'
  return (
    <Group gap={6} wrap="nowrap">
      <span className="turn-dot" data-status={status} />
      <Text size="sm" span>
        {statusNames[status]}
      </Text>
    </Group>
  )
}

const reasons: Readonly<Record<string, string>> = {
  max_output_tokens: 'The answer reached the token limit.',
  content_filter: "The model's content filter stopped the answer.",
  interrupted: 'The answer was interrupted.',
}

/** Explains why a turn has no complete answer; undefined for a complete or running turn. */
export function explain({ status, reason, error_code: code }: Turn): string | undefined {
  if (status === 'failed') return `The turn failed${code === null ? '' : ` (${code})`}.`
  if (status === 'cancelled') return 'The answer was cancelled.'
  if (status !== 'incomplete') return undefined
  return reasons[reason ?? ''] ?? 'The answer is incomplete.'
}
