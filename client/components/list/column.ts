/** Defines the columns, the order and the selection of tables. */
import type { ReactNode } from 'react'
import type { PlainKey } from '../../strings/catalogue.ts'

export type Order = 'asc' | 'desc'

export interface Sorting {
  readonly sort: string
  readonly order: Order
}

export interface Selection {
  readonly ids: ReadonlySet<string>
  readonly set: (ids: readonly string[], isSelected: boolean) => void
  readonly clear: () => void
}

export interface Column<T> {
  /** Column header; unique within the table. */
  readonly name: PlainKey
  readonly render: (row: T) => ReactNode
  readonly isNumber?: boolean
  /** Shows the header only to screen readers. */
  readonly isBare?: boolean
  /** Hides the column on narrow screens. */
  readonly isOptional?: boolean
  /** Names the row; a list always shows this column. */
  readonly isMain?: boolean
  /** Hides the column until the user shows it. */
  readonly isHidden?: boolean
  /** The list's sort key for this column; undefined if the list cannot be sorted by it. */
  readonly sort?: string
  /** The order that the first click selects; `asc` by default. */
  readonly firstOrder?: Sorting['order']
}
