/** Warns on an agent's pages, and in the navigation, that budgets are used up. */
import { Alert } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { TextLink } from '../components/text.tsx'
import { renderMoment, renderNumber, renderShare } from '../format.ts'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { levelOf, readAmounts, shareOf } from './amounts.ts'
import { type Budget, budgetsQuery } from './queries.ts'

interface Rejecting {
  readonly budget: Budget
  readonly share: number
  readonly isUsedUp: boolean
}

/** Returns the budgets that reject calls, or will soon do so, fullest first. */
function listFull(budgets: readonly Budget[]): Rejecting[] {
  return budgets
    .flatMap((budget) => {
      const amounts = readAmounts(budget)
      if (amounts === undefined || budget.mode === 'observe' || levelOf(amounts) === 'within') return []
      return { budget, share: shareOf(amounts), isUsedUp: levelOf(amounts) === 'usedUp' }
    })
    .sort((one, other) => other.share - one.share)
}

/** Shows the fullest of the budgets that apply to the agent. */
export function BudgetNotice({ agentId }: { readonly agentId: string }) {
  const { data = [] } = useQuery(budgetsQuery)
  const applying = data.filter(({ scope }) => scope.type === 'key' || scope.id === agentId)
  const [fullest] = listFull(applying)
  if (fullest === undefined) return null
  const { budget, share, isUsedUp } = fullest
  return (
    <Alert color={isUsedUp ? 'red' : 'yellow'} icon={<Icon name="warning" />} mb="md" role="status">
      {isUsedUp
        ? budget.resets_at === null
          ? t('budgets.usedUpForever')
          : t('budgets.usedUpNotice', { when: renderMoment(budget.resets_at) })
        : t('budgets.nearNotice', { share: renderShare(share) })}{' '}
      <TextLink to="/budgets/$budgetId" params={{ budgetId: budget.id }} inherit underline="always">
        {t('budgets.viewBudget')}
      </TextLink>
    </Alert>
  )
}

/** Shows how many budgets reject calls. */
export function BudgetBadge() {
  const { data = [] } = useQuery(budgetsQuery)
  const count = listFull(data).filter(({ isUsedUp }) => isUsedUp).length
  if (count === 0) return null
  const text = t('budgets.usedUpCount', { count })
  return (
    <span className="navigation-badge" title={text}>
      <span aria-hidden="true">{renderNumber(count)}</span>
      <span className="for-screen-readers">{text}</span>
    </span>
  )
}
