/** How much of a budget is used. */
import { Progress, Stack, Text } from '@mantine/core'
import { renderNumber } from '../lib/format.ts'
import type { AdminKey } from './tab.ts'

const periods = [
  ['day', 'today'],
  ['month', 'this month'],
] as const

export function BudgetState({ budget }: Pick<AdminKey, 'budget'>) {
  const bounds = periods.flatMap(([period, when]) => {
    const bound = budget[period]
    return bound === null ? [] : [{ ...bound, when }]
  })
  if (bounds.length === 0) return 'unbounded'
  return (
    <Stack gap={4} className="budget">
      {bounds.map(({ limit, used, when }) => {
        const share = limit === 0 ? 1 : Math.min(used / limit, 1)
        return (
          <div key={when}>
            <Text size="xs">
              {renderNumber(used)} of {renderNumber(limit)} {when}
            </Text>
            <Progress
              size="sm"
              value={share * 100}
              color={share < 1 ? 'indigo' : 'red'}
              aria-label={`Tokens used ${when}`}
            />
          </div>
        )
      })}
    </Stack>
  )
}
