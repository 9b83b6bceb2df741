/** Shows one page of a list with search, filters, sorting, column choice, selection and row menus. */
import './list.css'
import { Button } from '@mantine/core'
import type { ReactNode } from 'react'
import type { Thing } from '../../strings/catalogue.ts'
import { t } from '../../strings/language.ts'
import { DataTable, Pager } from '../DataTable.tsx'
import { Empty, Failed, Loading } from '../QueryStates.tsx'
import type { Column, Sorting } from './column.ts'
import { type BulkAction, BulkBar, type Filter, ListToolbar } from './ListToolbar.tsx'
import {
  findPreviousPage,
  type ListSearch,
  rememberPage,
  useColumnChoice,
  useSelection,
} from './list-state.ts'
import { RowMenu } from './RowMenu.tsx'

export type { BulkAction, Filter } from './ListToolbar.tsx'
export type { ListSearch } from './list-state.ts'

interface ListQuery<T> {
  readonly data: ListPage<T> | undefined
  readonly error: unknown
  readonly isPlaceholderData?: boolean
  readonly refetch: () => unknown
}

export interface ListPage<T> {
  readonly data: readonly T[]
  readonly has_more?: boolean | undefined
  /** Start of the next page, if it is not the id of the last item. */
  readonly next_after?: string | null
}

interface ListViewProps<T> {
  /** Accessible name of the table, such as `Agents`. */
  readonly label: string
  /** Name of the items in sentences. */
  readonly items: Thing
  readonly columns: readonly Column<T>[]
  readonly query: ListQuery<T>
  readonly idOf: (row: T) => string
  /** Name of a row for screen readers. */
  readonly nameOf: (row: T) => string
  readonly search: ListSearch
  /** Changes the given search parameters of the address; undefined removes one. */
  readonly onSearch: (changes: Readonly<Record<string, string | undefined>>) => void
  /** The order if the address specifies none. */
  readonly sorting: Sorting
  /** Undefined if the list cannot be searched. */
  readonly placeholder?: string
  readonly filters?: readonly Filter[]
  /** Further filters in the toolbar. */
  readonly toolbar?: ReactNode
  readonly bulk?: readonly BulkAction<T>[]
  readonly menu?: (row: T) => ReactNode
  /** Shown if the list has no items and no filters. */
  readonly empty: ReactNode
  /** Replaces the text that is shown if no item matches the filters. */
  readonly noMatches?: ReactNode
  readonly hasRowLinks?: boolean
  readonly onPhone?: 'cards' | 'scroll' | 'same'
}

const paging = ['sort', 'order', 'after', 'tab']

export function ListView<T>(props: ListViewProps<T>) {
  const { items, columns, query, search, onSearch, filters = [], toolbar, placeholder } = props
  const { data, error, refetch, isPlaceholderData = false } = query
  const choice = useColumnChoice(items, columns)
  const selection = useSelection(JSON.stringify(search))
  const isFiltered = Object.entries(search).some(
    ([name, value]) => value !== undefined && !paging.includes(name),
  )
  const isEmpty = data?.data.length === 0 && search.after === undefined && !isFiltered
  if (data === undefined && error !== null)
    return <Failed error={error} what={items} retry={() => void refetch()} />
  if (isEmpty) return props.empty
  const selected = data?.data.filter((row) => selection.ids.has(props.idOf(row))) ?? []
  return (
    <div className="list">
      {selected.length > 0 ? (
        <BulkBar rows={selected} actions={props.bulk ?? []} onClear={selection.clear} />
      ) : (
        <ListToolbar
          search={search}
          values={search as Readonly<Record<string, unknown>>}
          searchLabel={
            placeholder === undefined ? undefined : t('common.searchThings', { thing: t(`things.${items}`) })
          }
          placeholder={placeholder}
          filters={filters}
          columns={columns}
          choice={choice}
          onChange={(changes) => onSearch({ ...changes, after: undefined })}
        >
          {toolbar}
        </ListToolbar>
      )}
      {data === undefined ? <Loading what={items} rows={8} /> : null}
      <div aria-live="polite" aria-busy={isPlaceholderData}>
        {data?.data.length === 0
          ? (props.noMatches ?? <NoMatches {...props} isFiltered={isFiltered} />)
          : null}
        {data === undefined || data.data.length === 0 ? null : (
          <ListTable {...props} rows={data.data} shown={choice.shown} selection={selection} />
        )}
      </div>
      <ListPager {...props} />
    </div>
  )
}

interface ListTableProps<T> extends ListViewProps<T> {
  readonly rows: readonly T[]
  readonly shown: readonly Column<T>[]
  readonly selection: ReturnType<typeof useSelection>
}

function ListTable<T>(props: ListTableProps<T>) {
  const { label, rows, shown, idOf, nameOf, menu, bulk = [], search, sorting, onSearch } = props
  const columns: readonly Column<T>[] =
    menu === undefined
      ? shown
      : [
          ...shown,
          {
            name: 'common.actions',
            isBare: true,
            render: (row) => (
              <RowMenu label={t('common.actionsFor', { name: nameOf(row) })}>{menu(row)}</RowMenu>
            ),
          },
        ]
  return (
    <DataTable
      label={label}
      columns={columns}
      rows={rows}
      keyOf={idOf}
      nameOf={nameOf}
      sorting={{ ...sorting, ...withoutUndefined(search) }}
      onSort={({ sort, order }) => {
        const isDefault = sort === sorting.sort && order === sorting.order
        onSearch({
          sort: isDefault ? undefined : sort,
          order: isDefault ? undefined : order,
          after: undefined,
        })
      }}
      {...(bulk.length === 0 ? {} : { selection: props.selection })}
      {...(props.hasRowLinks === undefined ? {} : { hasRowLinks: props.hasRowLinks })}
      {...(props.onPhone === undefined ? {} : { onPhone: props.onPhone })}
    />
  )
}

function withoutUndefined({ sort, order }: ListSearch): Partial<Sorting> {
  return { ...(sort === undefined ? {} : { sort }), ...(order === undefined ? {} : { order }) }
}

function NoMatches<T>({
  items,
  search,
  onSearch,
  isFiltered,
}: ListViewProps<T> & { readonly isFiltered: boolean }) {
  const names = Object.keys(search).filter((name) => name !== 'tab')
  const clear = () => onSearch(Object.fromEntries(names.map((name) => [name, undefined])))
  if (!isFiltered)
    return (
      <Empty icon="search" title={t('common.noMore', { thing: t(`things.${items}`) })}>
        {t('common.pageIsEmpty')}
      </Empty>
    )
  return (
    <Empty
      icon="search"
      title={t('common.noMatching', { thing: t(`things.${items}`) })}
      action={
        <Button variant="default" onClick={clear}>
          {t('common.clearFilters')}
        </Button>
      }
    >
      {t('common.changeSearch')}
    </Empty>
  )
}

function ListPager<T>({ query: { data }, search: { after }, idOf, onSearch }: ListViewProps<T>) {
  const last = data?.data.at(-1)
  const lastId = last === undefined ? undefined : idOf(last)
  const next = data?.has_more === true ? (data.next_after ?? lastId) : undefined
  return (
    <Pager
      hasPrevious={after !== undefined}
      hasNext={next !== undefined}
      onPrevious={() => onSearch({ after: after === undefined ? undefined : findPreviousPage(after) })}
      onNext={() => {
        if (next === undefined) return
        rememberPage(after, next)
        onSearch({ after: next })
        window.scrollTo(0, 0)
      }}
    />
  )
}
