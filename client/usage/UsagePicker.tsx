/** Selects the period, keys and grouping for the Usage page. */

import './usage.css'
import { Badge, Button, Group, NativeSelect, SegmentedControl, TextInput } from '@mantine/core'
import { type ReactNode, useId, useState } from 'react'
import { renderNumber } from '../format.ts'
import { groupings, ranges, type UsageSearch } from '../search.ts'
import { t } from '../strings/language.ts'
import { KeyFilter } from './KeyFilter.tsx'
import { nameOutcome, outcomes } from './outcomes.ts'
import { daysOf, selectsAll, useCalled } from './use-usage.ts'

interface UsagePickerProps {
  readonly search: UsageSearch
  readonly onSearch: (search: UsageSearch) => void
  readonly isAdministrator: boolean
  readonly isAllKeys?: boolean
  /** Further actions. */
  readonly children: ReactNode
}

const rangeNames = {
  '7': 'usage.days7',
  '30': 'usage.days30',
  '90': 'usage.days90',
  '365': 'usage.year',
} as const

export function UsagePicker({
  search,
  onSearch,
  isAdministrator,
  isAllKeys = false,
  children,
}: UsagePickerProps) {
  const { from, to, range = '30', by = 'day', view } = search
  const [isChoosing, setIsChoosing] = useState(from !== undefined)
  const pickRange = (value: string) => {
    setIsChoosing(value === 'own')
    const found = ranges.find((one) => one === value)
    if (found !== undefined) onSearch({ ...search, range: found, from: undefined, to: undefined })
  }
  const isAll = selectsAll(search)
  const offered = groupings.filter((one) => one !== 'key' || isAll)
  return (
    <Group gap="sm" align="flex-end">
      <SegmentedControl
        aria-label={t('usage.period')}
        value={isChoosing ? 'own' : range}
        data={[
          ...ranges.map((value) => ({ value, label: t(rangeNames[value]) })),
          { value: 'own', label: t('usage.custom') },
        ]}
        onChange={pickRange}
      />
      <SegmentedControl
        aria-label={t('usage.view')}
        value={view ?? 'sums'}
        data={[
          { value: 'sums', label: t('usage.summary') },
          { value: 'calls', label: t('usage.calls') },
        ]}
        onChange={(value) => onSearch({ ...search, view: value === 'calls' ? value : undefined })}
      />
      <Filters search={search}>
        {view === 'calls' ? null : (
          <SegmentedControl
            aria-label={t('usage.groupBy')}
            value={by}
            data={offered.map((value) => ({ value, label: t(`usage.${value}`) }))}
            onChange={(value) => onSearch({ ...search, by: groupings.find((one) => one === value) })}
          />
        )}
        {isAdministrator && !isAllKeys ? <Whose search={search} onSearch={onSearch} isAll={isAll} /> : null}
        {isAdministrator && (isAll || isAllKeys) ? <KeyFilter search={search} onSearch={onSearch} /> : null}
        <CalledFilter by="agent" search={search} onSearch={onSearch} />
        <CalledFilter by="model" search={search} onSearch={onSearch} />
        <OutcomeFilter search={search} onSearch={onSearch} />
      </Filters>
      <Group ms="auto">{children}</Group>
      {isChoosing ? <OwnDays search={search} onSearch={onSearch} key={`${from} ${to}`} /> : null}
    </Group>
  )
}

interface FiltersProps {
  readonly search: UsageSearch
  readonly children: ReactNode
}

/** Hides the filters on phones, where they need several rows, until the user shows them. */
function Filters({ search: { agent, model, status, key }, children }: FiltersProps) {
  const [isOpen, setIsOpen] = useState(false)
  const id = useId()
  const count = [agent, model, status, key].filter((value) => value !== undefined).length
  return (
    <>
      <Button
        className="usage-filters-button"
        variant="default"
        aria-expanded={isOpen}
        aria-controls={id}
        rightSection={count === 0 ? null : <Badge size="sm">{renderNumber(count)}</Badge>}
        onClick={() => setIsOpen(!isOpen)}
      >
        {t('admin.filters')}
      </Button>
      <div id={id} className="usage-filters" data-open={isOpen || undefined}>
        {children}
      </div>
    </>
  )
}

type PartProps = Pick<UsagePickerProps, 'search' | 'onSearch'>

/** Selects one of the agents or models that were called in the period. */
function CalledFilter({ by, search, onSearch }: PartProps & { readonly by: 'agent' | 'model' }) {
  const { data: called = [] } = useCalled(search, by)
  const value = search[by]
  const options = [
    ...new Map(
      called.map(({ narrowed, name }) => [
        narrowed[by] ?? '',
        by === 'model' ? (narrowed.model ?? '') : name,
      ]),
    ),
  ].map(([id, label]) => ({ value: id, label }))
  const isListed = value === undefined || options.some((option) => option.value === value)
  return (
    <NativeSelect
      aria-label={t(`usage.${by}`)}
      className="list-filter"
      data-set={value !== undefined || undefined}
      value={value ?? ''}
      data={[
        { value: '', label: by === 'agent' ? t('common.allAgents') : t('usage.allModels') },
        ...(isListed ? [] : [{ value, label: value }]),
        ...options,
      ]}
      onChange={({ currentTarget }) => onSearch({ ...search, [by]: currentTarget.value || undefined })}
    />
  )
}

function OutcomeFilter({ search, onSearch }: PartProps) {
  const { status } = search
  const offered: readonly string[] = outcomes
  const isListed = status === undefined || offered.includes(status)
  return (
    <NativeSelect
      aria-label={t('usage.outcome')}
      className="list-filter"
      data-set={status !== undefined || undefined}
      value={status ?? ''}
      data={[
        { value: '', label: t('usage.allOutcomes') },
        ...(isListed ? offered : [...offered, status]).map((value) => ({ value, label: nameOutcome(value) })),
      ]}
      onChange={({ currentTarget }) => onSearch({ ...search, status: currentTarget.value || undefined })}
    />
  )
}

interface WhoseProps extends PartProps {
  readonly isAll: boolean
}

function Whose({ search, onSearch, isAll }: WhoseProps) {
  const { by } = search
  const data = [
    { value: 'own', label: t('usage.thisKey') },
    { value: 'all', label: t('usage.allKeys') },
  ]
  const pick = (value: string) =>
    onSearch({
      ...search,
      key: undefined,
      whose: value === 'all' ? 'all' : undefined,
      by: value === 'own' && by === 'key' ? undefined : by,
    })
  return (
    <SegmentedControl
      aria-label={t('keys.title')}
      value={isAll ? 'all' : 'own'}
      data={data}
      onChange={pick}
    />
  )
}

function OwnDays({ search, onSearch }: PartProps) {
  const days = daysOf(search)
  const [from, setFrom] = useState(days.from)
  const [to, setTo] = useState(days.to)
  const isRight = from !== '' && to !== '' && from <= to
  return (
    <form
      className="usage-own-days"
      onSubmit={(event) => {
        event.preventDefault()
        onSearch({ ...search, range: undefined, from, to })
      }}
    >
      <Group gap="xs" align="flex-end">
        <TextInput
          type="date"
          label={t('usage.from')}
          size="xs"
          value={from}
          max={to}
          onChange={(event) => setFrom(event.currentTarget.value)}
        />
        <TextInput
          type="date"
          label={t('usage.to')}
          size="xs"
          value={to}
          min={from}
          onChange={(event) => setTo(event.currentTarget.value)}
        />
        <Button type="submit" size="xs" variant="default" disabled={!isRight}>
          {t('usage.show')}
        </Button>
      </Group>
    </form>
  )
}
