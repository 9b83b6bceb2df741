/** Holds a list's state: the columns shown in this browser, the selected rows, and the earlier pages. */
import { useLocalStorage } from '@mantine/hooks'
import { useState } from 'react'
import type { Thing } from '../../strings/catalogue.ts'
import type { Column, Order, Selection } from './column.ts'

/** The search parameters that all lists share. */
export interface ListSearch {
  /** Search text. */
  readonly q?: string | undefined
  readonly sort?: string | undefined
  readonly order?: Order | undefined
  /** Id of the last item on the previous page. */
  readonly after?: string | undefined
}

export interface ColumnChoice<T> {
  readonly shown: readonly Column<T>[]
  readonly isShown: (column: Column<T>) => boolean
  readonly toggle: (column: Column<T>) => void
}

/** Returns the columns to show, and stores the user's choice for each column of the table in this browser. */
export function useColumnChoice<T>(table: Thing, columns: readonly Column<T>[]): ColumnChoice<T> {
  const [choices, setChoices] = useLocalStorage<Readonly<Record<string, boolean>>>({
    key: `parley-shown-columns-${table}`,
    defaultValue: {},
    getInitialValueInEffect: false,
  })
  const isShown = ({ name, isHidden = false }: Column<T>) => choices[name] ?? !isHidden
  return {
    shown: columns.filter((column) => !isHideable(column) || isShown(column)),
    isShown,
    toggle: (column) => setChoices((now) => ({ ...now, [column.name]: !isShown(column) })),
  }
}

/**
 * The main column names the row, and columns without a visible header contain its actions, so these stay
 * visible.
 */
export function isHideable<T>({ isMain = false, isBare = false }: Column<T>): boolean {
  return !isMain && !isBare
}

const none: ReadonlySet<string> = new Set()

/** Keeps the selected rows until `scope`, such as the filters and the page, changes. */
export function useSelection(scope: string): Selection {
  const [state, setState] = useState({ scope, ids: none })
  const ids = state.scope === scope ? state.ids : none
  return {
    ids,
    set: (changed, isSelected) => {
      const others = [...ids].filter((id) => !changed.includes(id))
      setState({ scope, ids: new Set(isSelected ? [...others, ...changed] : others) })
    },
    clear: () => setState({ scope, ids: none }),
  }
}

/** Maps a page's `after` to the `after` of the page before it, for the pages that this tab has shown. */
const previousPages = new Map<string, string | undefined>()

export function rememberPage(after: string | undefined, next: string): void {
  previousPages.set(next, after)
}

/** Returns the start of the previous page; the first page if this tab has not shown it. */
export function findPreviousPage(after: string): string | undefined {
  return previousPages.get(after)
}
