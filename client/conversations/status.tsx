/** Shows the status of a turn. */
import { Status as StatusDot, type Tone } from '../components/Status.tsx'
import type { Turn } from './queries.ts'

type Status = Turn['status']

const labels: Readonly<Record<Status, readonly [name: string, tone: Tone]>> = {
  queued: ['Queued', 'active'],
  in_progress: ['Running', 'active'],
  completed: ['Completed', 'good'],
  incomplete: ['Incomplete', 'warn'],
  failed: ['Failed', 'bad'],
  cancelled: ['Cancelled', 'warn'],
}

export function StatusLabel({ status }: { readonly status: Status | null | undefined }) {
  if (status == null) return '–'
  const [name, tone] = labels[status]
  return <StatusDot tone={tone}>{name}</StatusDot>
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
