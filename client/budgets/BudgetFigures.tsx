/** Shows the state of a budget: what is used, what is left, when it resets and what it has rejected. */
import { Badge, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Status } from '../components/Status.tsx'
import { Ago, TextLink } from '../components/text.tsx'
import { renderMoment, renderShare } from '../format.ts'
import type { UsageSearch } from '../search.ts'
import { t } from '../strings/language.ts'
import { isUsd, levelOf, readAmounts, renderAmount, renderBare, shareOf } from './amounts.ts'
import { BudgetBar } from './BudgetBar.tsx'
import { type Forecast, predict } from './forecast.ts'
import { type Budget, recentDaysQuery } from './queries.ts'

interface BudgetProps {
  readonly budget: Budget
}

interface NamedBudgetProps extends BudgetProps {
  readonly name: string
}

/** Shows the bar with its amounts; for budgets of visitors and conversations, a link to their list. */
export function Used({ budget, name }: NamedBudgetProps) {
  const amounts = readAmounts(budget)
  if (amounts === undefined) {
    const isVisitor = budget.scope.type === 'visitor'
    return (
      <div className="budget-used">
        <span className="budget-hint">{t('budgets.forEach')}</span>
        <TextLink to="/budgets/$budgetId" params={{ budgetId: budget.id }} size="sm">
          {t(isVisitor ? 'budgets.showVisitors' : 'budgets.showConversations')}
        </TextLink>
      </div>
    )
  }
  const { unit, limit, granted, booked, reserved } = amounts
  return (
    <div className="budget-used">
      <span>
        {t('budgets.usedOf', {
          used: renderBare(unit, booked),
          limit: renderAmount(unit, limit + granted),
        })}
        {reserved === 0 ? null : (
          <span className="budget-hint">
            {' · '}
            {t('budgets.reservedToo', { amount: renderBare(unit, reserved) })}
          </span>
        )}
      </span>
      <BudgetBar label={name} amounts={amounts} marks={budget.warn_at} />
      <ForecastText budget={budget} />
    </div>
  )
}

/** Shows nothing if there is too little data for a forecast. */
export function ForecastText({ budget }: BudgetProps) {
  const forecast = useForecast(budget)
  if (forecast === undefined) return null
  const help = t(budget.period === 'day' ? 'budgets.forecastDayHelp' : 'budgets.forecastHelp')
  return (
    <span className="budget-hint" title={help}>
      {forecast.kind === 'lasts'
        ? t('budgets.forecastLasts')
        : t('budgets.forecastEnds', { when: renderMoment(forecast.atSeconds) })}
    </span>
  )
}

function useForecast(budget: Budget): Forecast | undefined {
  const { scope, period, period_start: startsAt, resets_at: endsAt } = budget
  const amounts = readAmounts(budget)
  const { data = [] } = useQuery({
    ...recentDaysQuery(scope.type === 'key' ? undefined : scope.id),
    enabled: amounts !== undefined && period !== 'day',
  })
  if (amounts === undefined) return undefined
  const recent = data.map(({ day = '', cost, total_tokens: tokens }) => ({
    day,
    amount: isUsd(amounts.unit) ? Number(cost) : tokens,
  }))
  const { booked, limit, granted } = amounts
  return predict(
    { period, startsAt, endsAt, booked, limit: limit + granted, recent },
    Math.floor(Date.now() / 1_000),
  )
}

const tones = { within: 'good', near: 'warn', usedUp: 'bad' } as const

/** Shows whether the budget is used up, and whether it rejects calls. */
export function State({ budget }: BudgetProps) {
  const { mode, refused } = budget
  const amounts = readAmounts(budget)
  const level = amounts === undefined ? undefined : levelOf(amounts)
  const isObserving = mode === 'observe'
  return (
    <div className="budget-state">
      {amounts === undefined || level === undefined ? (
        isObserving ? null : (
          t('budgets.enforces')
        )
      ) : (
        <Status tone={isObserving && level === 'usedUp' ? 'warn' : tones[level]}>
          {nameLevel(level, shareOf(amounts), isObserving)}
        </Status>
      )}
      {refused === null || refused === 0 ? null : (
        <span className="budget-hint">
          {t(isObserving ? 'budgets.wouldRefuse' : 'budgets.refused', { count: refused })}
        </span>
      )}
      {isObserving ? (
        <Badge size="sm" variant="default" title={t('budgets.observeHelp')}>
          {t('budgets.observes')}
        </Badge>
      ) : null}
    </div>
  )
}

function nameLevel(level: ReturnType<typeof levelOf>, share: number, isObserving: boolean): string {
  if (level === 'within') return t('budgets.withinLimit')
  if (level === 'near') return t('budgets.nearLimit', { share: renderShare(share) })
  return t(isObserving ? 'budgets.overLimit' : 'budgets.usedUp')
}

export function Remaining({ budget }: BudgetProps) {
  const amounts = readAmounts(budget)
  if (amounts === undefined) return '–'
  return renderAmount(amounts.unit, amounts.remaining)
}

export function Resets({ budget: { resets_at: at } }: BudgetProps) {
  if (at === null) return t('budgets.never')
  return (
    <Text span size="sm">
      <Ago seconds={at} />
    </Text>
  )
}

/** The number of days that the Usage page shows for a budget that never resets. */
const TOTAL_DAYS = '365'

/** Returns the address of the calls that the budget has counted in its current period. */
export function callsOf({ scope, period, period_start: startsAt, resets_at: endsAt }: Budget): UsageSearch {
  const agent = scope.type === 'key' ? {} : { agent: scope.id }
  if (period === 'total') return { view: 'calls', range: TOTAL_DAYS, ...agent }
  const toDay = (ms: number) => new Date(ms).toISOString().slice(0, 10)
  const to = Math.min(Date.now(), endsAt === null ? Date.now() : endsAt * 1_000 - 1)
  return {
    view: 'calls',
    from: toDay(startsAt * 1_000),
    to: toDay(Math.max(to, startsAt * 1_000 + 1)),
    ...agent,
  }
}
