/** Lists the visitors or conversations that have used a budget, those with the largest amounts first. */
import { Code, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { RowMenu } from '../components/list/RowMenu.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { renderNumber } from '../format.ts'
import { t } from '../strings/language.ts'
import { readSubject, renderAmount, renderBare } from './amounts.ts'
import { BudgetBar } from './BudgetBar.tsx'
import { type Doing, EntryMenuItems } from './BudgetDialogs.tsx'
import { type Budget, type Subject, subjectsQuery } from './queries.ts'

interface SubjectsProps {
  readonly budget: Budget
  readonly setDoing: (doing: Doing) => void
}

export function Subjects({ budget, setDoing }: SubjectsProps) {
  const isVisitor = budget.scope.type === 'visitor'
  const { data, error, refetch } = useQuery(subjectsQuery(budget.id))
  const title = t(isVisitor ? 'budgets.visitors' : 'budgets.conversations')
  return (
    <div>
      <Title order={2}>{title}</Title>
      <Text size="sm" c="dimmed" mb="sm">
        {t(isVisitor ? 'budgets.subjectsHelp' : 'budgets.conversationsHelp')}
      </Text>
      {data === undefined && error === null ? <Loading what="subjects" rows={4} /> : null}
      {error === null ? null : <Failed error={error} what="subjects" retry={() => void refetch()} />}
      {data?.length === 0 ? (
        <Empty
          icon={isVisitor ? 'visitors' : 'conversations'}
          title={t(isVisitor ? 'budgets.noVisitors' : 'budgets.noConversations')}
        >
          {t('budgets.noSubjectsHelp')}
        </Empty>
      ) : null}
      {data === undefined || data.length === 0 ? null : (
        <DataTable
          label={title}
          columns={columnsOf(budget, setDoing)}
          rows={data}
          keyOf={({ subject }) => subject}
        />
      )}
    </div>
  )
}

function columnsOf(budget: Budget, setDoing: SubjectsProps['setDoing']): readonly Column<Subject>[] {
  const isVisitor = budget.scope.type === 'visitor'
  const columns: Column<Subject>[] = [
    {
      name: isVisitor ? 'budgets.visitor' : 'budgets.conversation',
      render: ({ subject }) => <Code className="budget-subject">{subject}</Code>,
    },
    { name: 'budgets.used', render: (subject) => <SubjectBar budget={budget} subject={subject} /> },
    {
      name: 'budgets.remaining',
      isNumber: true,
      render: (subject) => renderAmount(budget.unit, readSubject(budget, subject).remaining),
    },
    { name: 'budgets.refusedCalls', isNumber: true, render: ({ refused }) => renderNumber(refused) },
  ]
  if (budget.managed_by === 'operator') return columns
  const menu: Column<Subject> = {
    name: 'common.actions',
    isBare: true,
    render: ({ subject }) => (
      <RowMenu label={t('common.actionsFor', { name: subject })}>
        <EntryMenuItems budget={budget} subject={subject} setDoing={setDoing} />
      </RowMenu>
    ),
  }
  return [...columns, menu]
}

function SubjectBar({ budget, subject }: { readonly budget: Budget; readonly subject: Subject }) {
  const amounts = readSubject(budget, subject)
  const { unit, limit, granted, booked } = amounts
  return (
    <div className="budget-used">
      <span>
        {t('budgets.usedOf', {
          used: renderBare(unit, booked),
          limit: renderAmount(unit, limit + granted),
        })}
      </span>
      <BudgetBar label={subject.subject} amounts={amounts} marks={budget.warn_at} />
    </div>
  )
}
