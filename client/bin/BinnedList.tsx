/** Lists deleted objects of one kind, which can be restored or deleted permanently. */
import { Menu } from '@mantine/core'
import { keepPreviousData, type QueryClient, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import type { Column } from '../components/DataTable.tsx'
import { ConfirmDialog } from '../components/Dialog.tsx'
import { type ListPage, ListView } from '../components/list/ListView.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { problemOf } from '../failure.ts'
import { changeSearch } from '../search.ts'
import { showProblem } from '../shell/toast.tsx'
import type { Thing } from '../strings/catalogue.ts'
import { t } from '../strings/language.ts'

const PAGE_SIZE = 25

interface BinnedListProps<T> {
  /** Accessible name of the table. */
  readonly label: string
  readonly items: Thing
  readonly columns: readonly Column<T>[]
  /** First part of the keys of all queries about these objects. */
  readonly queryKey: string
  readonly list: (page: {
    readonly limit: number
    readonly after: string | undefined
  }) => Promise<ListPage<T>>
  readonly idOf: (row: T) => string
  readonly nameOf: (row: T) => string
  readonly restore: (queries: QueryClient, ids: readonly string[]) => Promise<void>
  readonly deleteForever: (queries: QueryClient, ids: readonly string[]) => Promise<void>
  /** States what is lost if one object is deleted permanently. */
  readonly lossOf: (name: ReactNode) => ReactNode
  /** States what is lost if several objects are deleted permanently. */
  readonly lossOfMany: string
  /** Explains the empty list. */
  readonly emptyHelp: string
  /** Links from the empty list to the objects that are not deleted. */
  readonly emptyLink: ReactNode
}

export function BinnedList<T>(props: BinnedListProps<T>) {
  const { label, items, columns, queryKey, list, idOf, nameOf } = props
  const { after } = useSearch({ from: '/shell/bin' })
  const navigate = useNavigate({ from: '/bin' })
  const queries = useQueryClient()
  const [deleted, setDeleted] = useState<readonly T[]>([])
  const query = useQuery({
    queryKey: [queryKey, 'bin', after],
    queryFn: () => list({ limit: PAGE_SIZE, after }),
    placeholderData: keepPreviousData,
  })
  const restore = (rows: readonly T[]) => props.restore(queries, rows.map(idOf))
  const [first] = deleted
  return (
    <>
      <ListView
        label={label}
        items={items}
        columns={columns}
        query={query}
        idOf={idOf}
        nameOf={nameOf}
        search={{ after }}
        onSearch={(changes) => void navigate({ search: (now) => changeSearch(now, changes) })}
        sorting={{ sort: 'binned', order: 'desc' }}
        bulk={[
          { label: t('bin.restore'), run: restore },
          {
            label: t('bin.deleteForeverMenu'),
            isDangerous: true,
            run: (rows) => {
              setDeleted(rows)
              return undefined
            },
          },
        ]}
        menu={(row) => (
          <>
            <Menu.Item onClick={() => void restore([row]).catch((thrown) => showProblem(problemOf(thrown)))}>
              {t('bin.restore')}
            </Menu.Item>
            <Menu.Item className="danger-text" onClick={() => setDeleted([row])}>
              {t('bin.deleteForeverMenu')}
            </Menu.Item>
          </>
        )}
        empty={
          <Empty icon="trash" title={t('bin.empty')} action={props.emptyLink}>
            {props.emptyHelp}
          </Empty>
        }
      />
      <ConfirmDialog
        title={t('bin.deleteForever')}
        isOpen={deleted.length > 0}
        onClose={() => setDeleted([])}
        onConfirm={() => props.deleteForever(queries, deleted.map(idOf))}
        action={t('bin.deleteForever')}
        isDangerous
      >
        {deleted.length === 1 && first !== undefined
          ? props.lossOf(<bdi>{nameOf(first)}</bdi>)
          : props.lossOfMany}
      </ConfirmDialog>
    </>
  )
}
