/** Shows the status of a turn. */
import { Status as StatusDot, type Tone } from '../components/Status.tsx'
import { t } from '../strings/language.ts'
import type { Turn } from './queries.ts'

type Status = Turn['status']

const labels: Readonly<Record<Status, readonly [name: string, tone: Tone]>> = {
  queued: [t('conversations.queued'), 'active'],
  in_progress: [t('conversations.inProgress'), 'active'],
  completed: [t('conversations.completed'), 'good'],
  incomplete: [t('conversations.incomplete'), 'warn'],
  failed: [t('conversations.failed'), 'bad'],
  cancelled: [t('conversations.cancelled'), 'warn'],
}

export function StatusLabel({ status }: { readonly status: Status | null | undefined }) {
  if (status == null) return '–'
  const [name, tone] = labels[status]
  return <StatusDot tone={tone}>{name}</StatusDot>
}
