/** Lets administrators select all parent keys or one of them. */
import { NativeSelect } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { UsageSearch } from '../search.ts'
import { t } from '../strings/language.ts'
import { keyNamesQuery } from './key-names.ts'

interface KeyFilterProps {
  readonly search: UsageSearch
  readonly onSearch: (search: UsageSearch) => void
}

export function KeyFilter({ search, onSearch }: KeyFilterProps) {
  const { data: names = new Map<string, string>() } = useQuery(keyNamesQuery)
  const { key } = search
  const isListed = key === undefined || names.has(key)
  return (
    <NativeSelect
      aria-label={t('usage.key')}
      className="list-filter"
      data-set={key !== undefined || undefined}
      value={key ?? ''}
      data={[
        { value: '', label: t('usage.allKeys') },
        ...(isListed ? [] : [{ value: key, label: key }]),
        ...[...names].map(([value, label]) => ({ value, label })),
      ]}
      onChange={({ currentTarget }) =>
        onSearch({ ...search, whose: 'all', key: currentTarget.value || undefined, after: undefined })
      }
    />
  )
}
