/** Shows rows as a table; on a phone, optionally as cards or as a table that scrolls sideways. */
import './data-table.css'
import { Button, Group } from '@mantine/core'
import type { ReactNode } from 'react'

export interface Column<T> {
  /** Column header; unique within the table. */
  readonly name: string
  readonly render: (row: T) => ReactNode
  readonly isNumber?: boolean
  /** Shows the header only to screen readers. */
  readonly isBare?: boolean
  /** Hides the column on narrow screens. */
  readonly isOptional?: boolean
}

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
}

export function DataTable<T>({ onPhone = 'cards', ...props }: DataTableProps<T>) {
  const { label, columns, rows, keyOf, total, hasRowLinks = false } = props
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <section className="panel data-table" data-phone={onPhone} tabIndex={0} aria-label={label}>
      <table aria-label={label}>
        <thead>
          <tr>
            {columns.map(({ name, isNumber, isBare, isOptional }) => (
              <th key={name} scope="col" data-number={isNumber} data-optional={isOptional}>
                {isBare ? <span className="for-screen-readers">{name}</span> : name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={keyOf(row)} row={row} columns={columns} isLink={hasRowLinks} />
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

interface RowProps<T> {
  readonly row: T
  readonly columns: readonly Column<T>[]
  readonly isLink?: boolean
}

function Row<T>({ row, columns, isLink = false }: RowProps<T>) {
  return (
    <tr className={isLink ? 'link-row' : undefined}>
      {columns.map(({ name, render, isNumber, isBare, isOptional }) => (
        <td
          key={name}
          data-number={isNumber}
          data-optional={isOptional}
          data-name={isBare ? undefined : name}
        >
          {render(row)}
        </td>
      ))}
    </tr>
  )
}

interface PagerProps {
  /** Id of the last item on the previous page; undefined on the first page. */
  readonly after: string | undefined
  /** Id of this page's last item; undefined if there are no older items. */
  readonly next: string | undefined
  readonly onTurn: (after: string | undefined) => void
}

/** Renders nothing if there is only one page. */
export function Pager({ after, next, onTurn }: PagerProps) {
  if (after === undefined && next === undefined) return null
  return (
    <Group justify="flex-end" gap="xs" mt="sm" role="group" aria-label="Pagination">
      <Button variant="default" size="xs" disabled={after === undefined} onClick={() => onTurn(undefined)}>
        Newest
      </Button>
      <Button variant="default" size="xs" disabled={next === undefined} onClick={() => onTurn(next)}>
        Older
      </Button>
    </Group>
  )
}

/** Returns the next page's `after` value, or undefined on the last page. */
export function nextOf<T>(
  page: { readonly data: readonly T[]; readonly has_more: boolean } | undefined,
  idOf: (entry: T) => string,
): string | undefined {
  const last = page?.data.at(-1)
  return page?.has_more && last !== undefined ? idOf(last) : undefined
}
