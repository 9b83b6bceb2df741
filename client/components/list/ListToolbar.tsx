/**
 * Shows the search field, the filters and the column choice above a list, or the actions for selected rows.
 */
import { ActionIcon, Button, Group, Menu, NativeSelect, Text } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { problemOf } from '../../failure.ts'
import { Icon } from '../../shell/icons.tsx'
import { showProblem } from '../../shell/toast.tsx'
import { t } from '../../strings/language.ts'
import type { Column } from './column.ts'
import { type ColumnChoice, isHideable } from './list-state.ts'
import { SearchField } from './SearchField.tsx'

export interface Filter {
  /** Name of the query parameter. */
  readonly name: string
  readonly label: string
  /** Label of the choice that removes the filter, such as `All kinds`. */
  readonly all: string
  readonly options: readonly { readonly value: string; readonly label: string }[]
}

interface ListToolbarProps<T> {
  readonly search: { readonly q?: string | undefined }
  readonly values: Readonly<Record<string, unknown>>
  /** Undefined if the list cannot be searched. */
  readonly searchLabel: string | undefined
  readonly placeholder?: string | undefined
  readonly filters: readonly Filter[]
  /** Further filters. */
  readonly children?: ReactNode
  readonly columns: readonly Column<T>[]
  readonly choice: ColumnChoice<T>
  readonly onChange: (changes: Readonly<Record<string, string | undefined>>) => void
}

export function ListToolbar<T>(props: ListToolbarProps<T>) {
  const { search, values, searchLabel, placeholder, filters, children, columns, choice, onChange } = props
  return (
    <div className="list-toolbar">
      {searchLabel === undefined ? null : (
        <SearchField
          label={searchLabel}
          placeholder={placeholder ?? t('common.search')}
          value={search.q ?? ''}
          onChange={(q) => onChange({ q: q === '' ? undefined : q })}
        />
      )}
      {filters.map(({ name, label, all, options }) => (
        <NativeSelect
          key={name}
          aria-label={label}
          className="list-filter"
          data-set={values[name] !== undefined || undefined}
          value={typeof values[name] === 'string' ? values[name] : ''}
          data={[{ value: '', label: all }, ...options]}
          onChange={({ currentTarget: { value } }) => onChange({ [name]: value || undefined })}
        />
      ))}
      {children}
      <ColumnMenu columns={columns} choice={choice} />
    </div>
  )
}

function ColumnMenu<T>({ columns, choice }: { columns: readonly Column<T>[]; choice: ColumnChoice<T> }) {
  const hideable = columns.filter(isHideable)
  if (hideable.length < 2) return null
  return (
    <Menu position="bottom-end" closeOnItemClick={false} width={200}>
      <Menu.Target>
        <ActionIcon
          variant="default"
          size={34}
          ms="auto"
          aria-label={t('common.columns')}
          title={t('common.columns')}
        >
          <Icon name="columns" size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{t('common.columns')}</Menu.Label>
        {hideable.map((column) => (
          <Menu.CheckboxItem
            key={column.name}
            checked={choice.isShown(column)}
            onChange={() => choice.toggle(column)}
          >
            {t(column.name)}
          </Menu.CheckboxItem>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

/** An action for all selected rows; it may ask for confirmation first. */
export interface BulkAction<T> {
  readonly label: string
  readonly isDangerous?: boolean
  /**
   * Resolves when the rows have changed. Returns undefined to keep the selection, for example if it opens a
   * dialog.
   */
  readonly run: (rows: readonly T[]) => Promise<unknown> | undefined
}

interface BulkBarProps<T> {
  readonly rows: readonly T[]
  readonly actions: readonly BulkAction<T>[]
  readonly onClear: () => void
}

export function BulkBar<T>({ rows, actions, onClear }: BulkBarProps<T>) {
  const [isBusy, setIsBusy] = useState(false)
  const run = async (action: BulkAction<T>) => {
    const done = action.run(rows)
    if (done === undefined) return
    setIsBusy(true)
    try {
      await done
      onClear()
    } catch (thrown) {
      showProblem(problemOf(thrown))
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <Group className="list-bulk" role="toolbar" aria-label={t('common.bulkActions')} gap="xs">
      <Text size="sm" fw={500} role="status">
        {t('common.rowsSelected', { count: rows.length })}
      </Text>
      {actions.map((action) => (
        <Button
          key={action.label}
          variant="default"
          size="xs"
          c={action.isDangerous ? 'var(--bad)' : undefined}
          loading={isBusy}
          onClick={() => void run(action)}
        >
          {action.label}
        </Button>
      ))}
      <Button variant="subtle" color="gray" size="xs" onClick={onClear}>
        {t('common.clearSelection')}
      </Button>
    </Group>
  )
}
