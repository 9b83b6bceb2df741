/** Lists the budgets of the active key. */
import './budgets.css'
import { Badge, Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import type { Column } from '../components/DataTable.tsx'
import { Dialog } from '../components/Dialog.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { TextLink } from '../components/text.tsx'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { renderLimit } from './amounts.ts'
import { BudgetDialogs, BudgetMenuItems, type Doing } from './BudgetDialogs.tsx'
import { Remaining, Resets, State, Used } from './BudgetFigures.tsx'
import { CreateBudget } from './BudgetForm.tsx'
import { useBudgetNames, useIsPending } from './BudgetName.tsx'
import { type Budget, budgetsQuery } from './queries.ts'

export function BudgetsPage() {
  const { add } = useSearch({ from: '/shell/budgets' })
  const navigate = useNavigate({ from: '/budgets' })
  const query = useQuery(budgetsQuery)
  const isPending = useIsPending(query.data ?? [])
  const nameOf = useBudgetNames(query.data ?? [])
  const [doing, setDoing] = useState<Doing>()
  const setOpen = (isOpen: boolean) => void navigate({ search: isOpen ? { add: true } : {} })
  const create = <CreateButton onClick={() => setOpen(true)} />
  return (
    <>
      <PageHeader title={t('budgets.title')} about={t('budgets.about')}>
        {query.data === undefined || query.data.length === 0 ? null : create}
      </PageHeader>
      <ListView
        label={t('budgets.title')}
        items="budgets"
        columns={columnsOf(nameOf)}
        query={{ ...query, data: query.data === undefined || isPending ? undefined : { data: query.data } }}
        idOf={({ id }) => id}
        nameOf={(budget) => `${nameOf(budget)}, ${renderLimit(budget)}`}
        search={{}}
        onSearch={() => undefined}
        sorting={{ sort: 'created', order: 'asc' }}
        menu={(budget) => <BudgetMenuItems budget={budget} setDoing={setDoing} />}
        empty={
          <Empty icon="budgets" title={t('budgets.none')} action={create}>
            {t('budgets.noneHelp')}
          </Empty>
        }
      />
      <Dialog title={t('budgets.create')} isOpen={add === true} onClose={() => setOpen(false)} size="lg">
        <CreateBudget onClose={() => setOpen(false)} />
      </Dialog>
      <BudgetDialogs doing={doing} onClose={() => setDoing(undefined)} />
    </>
  )
}

const columnsOf = (nameOf: (budget: Budget) => string): readonly Column<Budget>[] => [
  {
    name: 'budgets.budget',
    isMain: true,
    render: (budget) => (
      <span className="budget-name">
        <TextLink to="/budgets/$budgetId" params={{ budgetId: budget.id }} size="sm">
          <bdi>{nameOf(budget)}</bdi>
        </TextLink>
        <span className="budget-hint">{renderLimit(budget)}</span>
        <Ownership budget={budget} />
      </span>
    ),
  },
  { name: 'budgets.used', render: (budget) => <Used budget={budget} name={nameOf(budget)} /> },
  { name: 'budgets.remaining', isNumber: true, render: (budget) => <Remaining budget={budget} /> },
  { name: 'budgets.resets', render: (budget) => <Resets budget={budget} /> },
  { name: 'budgets.state', render: (budget) => <State budget={budget} /> },
]

/** Marks budgets that only administrators can change. */
function Ownership({ budget: { managed_by: manager } }: { readonly budget: Budget }) {
  if (manager === 'tenant') return null
  return (
    <Badge size="sm" variant="default" title={t('budgets.ofOperatorHelp')}>
      {t('budgets.ofOperator')}
    </Badge>
  )
}

function CreateButton({ onClick }: { readonly onClick: () => void }) {
  return (
    <Button leftSection={<Icon name="plus" size={16} />} onClick={onClick}>
      {t('budgets.create')}
    </Button>
  )
}
