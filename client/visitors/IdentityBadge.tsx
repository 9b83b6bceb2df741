/** Shows how a visitor is identified. */
import { Badge } from '@mantine/core'
import { t } from '../strings/language.ts'
import type { Visitor } from './queries.ts'

export function IdentityBadge({ kind }: Pick<Visitor, 'kind'>) {
  return (
    <Badge
      variant="light"
      tt="none"
      title={t(`visitors.about.${kind}`)}
      {...(kind === 'verified' ? { className: 'badge-accent' } : { color: 'gray' })}
    >
      {t(`visitors.${kind}`)}
    </Badge>
  )
}
