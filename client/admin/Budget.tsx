/** Shows the daily and monthly token budgets of a parent key. */

import { Progress, Stack, Text } from '@mantine/core'
import type { Outputs } from '../api.ts'
import type { AdminSearch } from '../search.ts'
import { t } from '../strings/language.ts'

const periods = [
  ['day', 'admin.usedToday', 'admin.tokensToday'],
  ['month', 'admin.usedMonth', 'admin.tokensMonth'],
] as const

export function BudgetState({ budget }: Pick<AdminKey, 'budget'>) {
  const bounds = periods.flatMap(([period, sentence, label]) => {
    const bound = budget[period]
    return bound === null ? [] : [{ ...bound, sentence, label }]
  })
  if (bounds.length === 0) return t('admin.noLimit')
  return (
    <Stack gap={4} className="budget">
      {bounds.map(({ limit, used, sentence, label }) => {
        const share = limit === 0 ? 1 : Math.min(used / limit, 1)
        return (
          <div key={label}>
            <Text size="xs">{t(sentence, { used, limit })}</Text>
            <Progress
              size="sm"
              value={share * 100}
              color={share < 1 ? 'indigo' : 'red'}
              aria-label={t(label)}
            />
          </div>
        )
      })}
    </Stack>
  )
}

export interface TabProps {
  readonly search: AdminSearch
  /** Changes some of the address's search parameters. */
  readonly change: (changes: Readonly<Record<string, string | undefined>>) => void
  /** Replaces all search parameters. */
  readonly go: (search: AdminSearch) => void
}

export type AdminKey = Outputs['admin']['keys']['data'][number]
