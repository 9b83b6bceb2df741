/** Shows rows as a table; on a phone, optionally as cards or as a table that scrolls sideways. */
import './data-table.css'
import { Button, Checkbox, Group } from '@mantine/core'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import type { Column, Selection, Sorting } from './list/column.ts'

export type { Column } from './list/column.ts'

interface DataTableProps<T> {
  /** Accessible name of the table. */
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  readonly onPhone?: 'cards' | 'scroll' | 'same'
  /** Makes each row a link; the first column must contain a link with the class `row-link`. */
  readonly hasRowLinks?: boolean
  /** Totals, shown as the last row. */
  readonly total?: T
  readonly sorting?: Sorting
  readonly onSort?: (sorting: Sorting) => void
  /** Shows a checkbox in each row; needs `nameOf`. */
  readonly selection?: Selection
  /** Name of a row for screen readers. */
  readonly nameOf?: (row: T) => string
}

export function DataTable<T>({ onPhone = 'cards', ...props }: DataTableProps<T>) {
  const { label, columns, rows, keyOf, total, hasRowLinks = false, selection } = props
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <section className="panel data-table" data-phone={onPhone} tabIndex={0} aria-label={label}>
      <table aria-label={label} data-selectable={selection === undefined ? undefined : true}>
        <thead>
          <tr>
            {selection === undefined ? null : (
              <th scope="col" className="select-cell">
                <SelectAll ids={rows.map(keyOf)} selection={selection} />
              </th>
            )}
            {columns.map((column) => (
              <Head key={column.name} column={column} {...props} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row
              key={keyOf(row)}
              row={row}
              id={keyOf(row)}
              columns={columns}
              isLink={hasRowLinks}
              selection={selection}
              name={props.nameOf?.(row)}
            />
          ))}
        </tbody>
        {total === undefined ? null : (
          <tfoot>
            <Row row={total} columns={columns} />
          </tfoot>
        )}
      </table>
    </section>
  )
}

const arrows = { asc: 'up', desc: 'down' } as const
const ariaOrders = { asc: 'ascending', desc: 'descending' } as const

interface HeadProps<T> extends Pick<DataTableProps<T>, 'sorting' | 'onSort'> {
  readonly column: Column<T>
}

function Head<T>({ column, sorting, onSort }: HeadProps<T>) {
  const { name, isNumber, isBare, isOptional, sort, firstOrder = 'asc' } = column
  const shared = { scope: 'col', 'data-number': isNumber, 'data-optional': isOptional } as const
  if (sort === undefined || onSort === undefined)
    return <th {...shared}>{isBare ? <span className="for-screen-readers">{t(name)}</span> : t(name)}</th>
  const current = sorting?.sort === sort ? sorting.order : undefined
  const next = current === undefined ? firstOrder : current === 'asc' ? 'desc' : 'asc'
  return (
    <th {...shared} aria-sort={current === undefined ? 'none' : ariaOrders[current]}>
      <button type="button" className="sort-button" onClick={() => onSort({ sort, order: next })}>
        {t(name)}
        <span data-shown={current !== undefined || undefined}>
          <Icon name={arrows[current ?? firstOrder]} size={12} />
        </span>
      </button>
    </th>
  )
}

function SelectAll({ ids, selection }: { readonly ids: readonly string[]; readonly selection: Selection }) {
  const count = ids.filter((id) => selection.ids.has(id)).length
  return (
    <RowCheckbox
      label={t('common.selectAll')}
      isChecked={count > 0 && count === ids.length}
      isMixed={count > 0 && count < ids.length}
      onChange={(isChecked) => selection.set(ids, isChecked)}
    />
  )
}

interface RowCheckboxProps {
  readonly label: string
  readonly isChecked: boolean
  readonly isMixed?: boolean
  readonly onChange: (isChecked: boolean) => void
}

function RowCheckbox({ label, isChecked, isMixed = false, onChange }: RowCheckboxProps) {
  return (
    <Checkbox
      size="xs"
      className="row-checkbox"
      aria-label={label}
      checked={isChecked}
      indeterminate={isMixed}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  )
}

interface RowProps<T> {
  readonly row: T
  readonly id?: string
  readonly columns: readonly Column<T>[]
  readonly isLink?: boolean
  readonly selection?: Selection | undefined
  readonly name?: string | undefined
}

function Row<T>({ row, id = '', columns, isLink = false, selection, name: rowName }: RowProps<T>) {
  const isSelected = selection?.ids.has(id)
  return (
    <tr className={isLink ? 'link-row' : undefined} data-selected={isSelected || undefined}>
      {selection === undefined ? null : (
        <td className="select-cell">
          <RowCheckbox
            label={t('common.selectRow', { name: rowName ?? '' })}
            isChecked={isSelected ?? false}
            onChange={(isChecked) => selection.set([id], isChecked)}
          />
        </td>
      )}
      {columns.map(({ name, render, isNumber, isBare, isOptional }, index) => (
        <td
          key={name}
          data-first={index === 0 || undefined}
          data-number={isNumber}
          data-optional={isOptional}
          data-name={isBare ? undefined : t(name)}
        >
          {render(row)}
        </td>
      ))}
    </tr>
  )
}

interface PagerProps {
  readonly hasPrevious: boolean
  readonly hasNext: boolean
  readonly onPrevious: () => void
  readonly onNext: () => void
}

/** Renders nothing if there is only one page. */
export function Pager({ hasPrevious, hasNext, onPrevious, onNext }: PagerProps) {
  if (!hasPrevious && !hasNext) return null
  return (
    <Group justify="flex-end" gap="xs" mt="sm" role="group" aria-label={t('common.pagination')}>
      <Button variant="default" size="xs" disabled={!hasPrevious} onClick={onPrevious}>
        {t('common.previous')}
      </Button>
      <Button variant="default" size="xs" disabled={!hasNext} onClick={onNext}>
        {t('common.next')}
      </Button>
    </Group>
  )
}
