/** Shows one budget: its state, its fields, and the visitors or conversations that have used it. */
import './budgets.css'
import { Alert, Anchor, Breadcrumbs, Button, Code, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { Facts } from '../components/Facts.tsx'
import { MoreActions } from '../components/MoreActions.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { Ago, TextLink } from '../components/text.tsx'
import { toFailure } from '../failure.ts'
import { renderMoment, renderShare } from '../format.ts'
import { UnknownPage } from '../shell/ErrorPage.tsx'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { type Amounts, readAmounts, renderAmount, renderBare, renderLimit, shareOf } from './amounts.ts'
import { BudgetBar } from './BudgetBar.tsx'
import { BudgetDialogs, BudgetMenuItems, type Doing } from './BudgetDialogs.tsx'
import { callsOf, ForecastText, State } from './BudgetFigures.tsx'
import { useBudgetNames, useIsPending } from './BudgetName.tsx'
import { type Budget, budgetQuery } from './queries.ts'
import { Subjects } from './Subjects.tsx'

export function BudgetPage() {
  const { budgetId } = useParams({ from: '/shell/budgets/$budgetId' })
  const { data: budget, error, refetch } = useQuery(budgetQuery(budgetId))
  const isPending = useIsPending(budget === undefined ? [] : [budget])
  if (budget !== undefined && !isPending) return <KnownBudget budget={budget} />
  if (error === null) return <Loading what="budget" rows={3} height={96} />
  if (toFailure(error).status === 404) return <UnknownPage />
  return <Failed error={error} what="budget" retry={() => void refetch()} />
}

function KnownBudget({ budget }: { readonly budget: Budget }) {
  const navigate = useNavigate()
  const [doing, setDoing] = useState<Doing>()
  const amounts = readAmounts(budget)
  const name = useBudgetNames([budget])(budget)
  const isOwn = budget.managed_by === 'tenant'
  const canRaise = isOwn && amounts !== undefined
  return (
    <>
      <Breadcrumbs mb={4}>
        <Anchor component={Link} to="/budgets" size="sm">
          {t('budgets.title')}
        </Anchor>
      </Breadcrumbs>
      <PageHeader title={name} about={renderLimit(budget)}>
        {canRaise ? (
          <Button
            leftSection={<Icon name="plus" size={16} />}
            onClick={() => setDoing({ what: 'raise', budget })}
          >
            {t('budgets.raise')}
          </Button>
        ) : null}
        <MoreActions>
          <BudgetMenuItems budget={budget} setDoing={setDoing} />
        </MoreActions>
      </PageHeader>
      <Stack gap="lg">
        {isOwn ? null : (
          <Alert color="gray" icon={<Icon name="admin" />} title={t('budgets.ofOperator')}>
            {t('budgets.ofOperatorHelp')}
          </Alert>
        )}
        {budget.scope.type === 'visitor' ? (
          <Alert color="yellow" icon={<Icon name="warning" />} title={t('budgets.visitorNote')}>
            {t('budgets.visitorNoteHelp')}
          </Alert>
        ) : null}
        {amounts === undefined ? null : <Meter budget={budget} amounts={amounts} name={name} />}
        <BudgetFacts budget={budget} amounts={amounts} />
        {amounts === undefined ? <Subjects budget={budget} setDoing={setDoing} /> : null}
      </Stack>
      <BudgetDialogs
        doing={doing}
        onClose={() => setDoing(undefined)}
        onDeleted={() => navigate({ to: '/budgets' })}
      />
    </>
  )
}

interface MeterProps {
  readonly budget: Budget
  readonly amounts: Amounts
  readonly name: string
}

/** Shows the bar with a legend, and links to the calls that it counts. */
function Meter({ budget, amounts, name }: MeterProps) {
  const { unit, limit, granted, booked, reserved } = amounts
  const thresholds = budget.warn_at
  return (
    <Stack gap="sm" className="panel" p="md" component="section" aria-label={t('budgets.used')}>
      <Group justify="space-between" align="flex-end" gap="sm">
        <div>
          <Text fz={24} fw={600} lh={1.25} className="budget-figure">
            {renderBare(unit, booked)}
          </Text>
          <Text size="sm" c="dimmed" className="budget-figure">
            {t('budgets.usedOf', {
              used: renderShare(shareOf(amounts)),
              limit: renderAmount(unit, limit + granted),
            })}
          </Text>
        </div>
        <TextLink to="/usage" search={callsOf(budget)} size="sm">
          {t('budgets.viewCalls')}
        </TextLink>
      </Group>
      <BudgetBar label={name} amounts={amounts} marks={thresholds} isLarge />
      <Group gap="md">
        <Key part="booked" title={t('budgets.bookedHelp')}>
          {`${t('budgets.booked')} ${renderBare(unit, booked)}`}
        </Key>
        <Key part="reserved" title={t('budgets.reservedHelp')}>
          {`${t('budgets.reserved')} ${renderBare(unit, reserved)}`}
        </Key>
        {thresholds.length === 0 ? null : (
          <Text size="xs" c="dimmed">
            {t('budgets.marks', { list: thresholds.map((mark) => renderShare(mark / 100)).join(', ') })}
          </Text>
        )}
      </Group>
      <ForecastText budget={budget} />
    </Stack>
  )
}

interface KeyProps {
  readonly part: 'booked' | 'reserved'
  readonly title: string
  readonly children: string
}

function Key({ part, title, children }: KeyProps) {
  return (
    <Group gap={6} title={title}>
      <span className={`budget-key budget-${part}`} />
      <Text size="xs" c="dimmed" className="budget-figure">
        {children}
      </Text>
    </Group>
  )
}

interface BudgetFactsProps {
  readonly budget: Budget
  readonly amounts: Amounts | undefined
}

function BudgetFacts({ budget, amounts }: BudgetFactsProps) {
  const { id, unit, mode, limit, managed_by: manager, period_start: startsAt, resets_at: endsAt } = budget
  const amount = (value: number) => renderAmount(unit, value)
  const own: readonly (readonly [string, string])[] =
    amounts === undefined
      ? []
      : [
          [t('budgets.remaining'), amount(amounts.remaining)],
          ...(amounts.granted === 0 ? [] : [[t('budgets.granted'), amount(amounts.granted)] as const]),
        ]
  return (
    <Facts
      label={t('conversations.details')}
      facts={[
        ...(amounts === undefined
          ? []
          : [[t('budgets.state'), <State key="state" budget={budget} />] as const]),
        ...own,
        [t('budgets.limit'), amount(Number(limit))],
        [t('budgets.resets'), endsAt === null ? t('budgets.never') : `${renderMoment(endsAt)}`],
        ...(startsAt === 0 ? [] : [[t('budgets.since'), renderMoment(startsAt)] as const]),
        [t('budgets.mode'), t(mode === 'observe' ? 'budgets.observes' : 'budgets.enforces')],
        [t('budgets.managedBy'), t(manager === 'operator' ? 'admin.administrator' : 'budgets.managedByYou')],
        [t('webhooks.created'), <Ago key="created" seconds={budget.created_at} />],
        [t('budgets.id'), <Code key="id">{id}</Code>],
      ]}
    />
  )
}
