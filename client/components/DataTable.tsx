/** A table of rows: on a phone either a card a row, or as wide as it is and pushed sideways. */
import './data-table.css'
import { Button, Group } from '@mantine/core'
import type { ReactNode } from 'react'

export interface Column<T> {
  /** Its head; unique within the table. */
  readonly name: string
  readonly render: (row: T) => ReactNode
  readonly isNumber?: boolean
  /** The head is for screen readers alone: the cells say what they are. */
  readonly isBare?: boolean
}

interface DataTableProps<T> {
  /** Names the table for those who do not see it. */
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  readonly onPhone?: 'cards' | 'scroll'
  /** The last line: what the rows add up to. */
  readonly total?: T
}

export function DataTable<T>({ onPhone = 'cards', ...props }: DataTableProps<T>) {
  const { label, columns, rows, keyOf, total } = props
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
    <section className="panel data-table" data-phone={onPhone} tabIndex={0} aria-label={label}>
      <table aria-label={label}>
        <thead>
          <tr>
            {columns.map(({ name, isNumber, isBare }) => (
              <th key={name} scope="col" data-number={isNumber}>
                {isBare ? <span className="for-screen-readers">{name}</span> : name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={keyOf(row)} row={row} columns={columns} />
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

function Row<T>({ row, columns }: { readonly row: T; readonly columns: readonly Column<T>[] }) {
  return (
    <tr>
      {columns.map(({ name, render, isNumber, isBare }) => (
        <td key={name} data-number={isNumber} data-name={isBare ? undefined : name}>
          {render(row)}
        </td>
      ))}
    </tr>
  )
}

interface PagerProps {
  /** The entry after which this page begins; undefined on the first. */
  readonly after: string | undefined
  /** The last entry of this page, where older ones follow. */
  readonly next: string | undefined
  readonly onTurn: (after: string | undefined) => void
}

/** Nothing where there is one page only. */
export function Pager({ after, next, onTurn }: PagerProps) {
  if (after === undefined && next === undefined) return null
  return (
    <Group justify="flex-end" gap="xs" mt="sm" role="group" aria-label="Pages of the list">
      <Button variant="default" size="xs" disabled={after === undefined} onClick={() => onTurn(undefined)}>
        Newest
      </Button>
      <Button variant="default" size="xs" disabled={next === undefined} onClick={() => onTurn(next)}>
        Older
      </Button>
    </Group>
  )
}

/** Where the next page begins, of a list as the server answers it. */
export function nextOf<T>(
  page: { readonly data: readonly T[]; readonly has_more: boolean } | undefined,
  idOf: (entry: T) => string,
): string | undefined {
  const last = page?.data.at(-1)
  return page?.has_more && last !== undefined ? idOf(last) : undefined
}
