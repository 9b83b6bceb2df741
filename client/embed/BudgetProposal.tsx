/** Proposes a daily budget for an agent that has none, because the key in its embed code is public. */
import { Alert, Button, Group, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { policyQuery } from '../agents/queries.ts'
import { api } from '../api.ts'
import { AmountField } from '../budgets/AmountField.tsx'
import { budgetsQuery, refreshBudgets, type Unit } from '../budgets/queries.ts'
import { problemOf } from '../failure.ts'
import { Icon } from '../shell/icons.tsx'
import { showDone } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'

const proposed = { usd: 5, tokens: 200_000 } as const satisfies Record<Unit, number>

export function BudgetProposal({ agentId }: { readonly agentId: string }) {
  const { data: budgets } = useQuery(budgetsQuery)
  const unit = useUnit(agentId)
  const hasBudget = budgets?.some(({ scope }) => scope.type === 'agent' && scope.id === agentId) ?? true
  if (hasBudget || unit === undefined) return null
  return <Proposal agentId={agentId} unit={unit} />
}

/** Proposes tokens if the agent's model has no price, because a budget in US dollars would reject its calls. */
function useUnit(agentId: string): Unit | undefined {
  const { data: policy } = useQuery(policyQuery(agentId))
  const [first] = policy?.effective_models ?? []
  const model = first === undefined ? undefined : `${first.provider}/${first.model}`
  const { data: isPriced } = useQuery({
    queryKey: ['prices', 'one', model],
    queryFn: async () => (await api.prices.get.query({ model: model ?? '' })).priced,
    enabled: model !== undefined,
    staleTime: 60_000,
  })
  if (policy !== undefined && model === undefined) return 'tokens'
  return isPriced === undefined ? undefined : isPriced ? 'usd' : 'tokens'
}

function Proposal({ agentId, unit }: { readonly agentId: string; readonly unit: Unit }) {
  const queries = useQueryClient()
  const [limit, setLimit] = useState<number | string>(proposed[unit])
  const [problem, setProblem] = useState<string>()
  const [isBusy, setIsBusy] = useState(false)
  const create = async (event: FormEvent) => {
    event.preventDefault()
    setIsBusy(true)
    try {
      const scope = { type: 'agent' as const, id: agentId }
      await api.budgets.create.mutate({ scope, unit, period: 'day', limit })
      await refreshBudgets(queries)
      showDone(t('budgets.created'))
    } catch (thrown) {
      setProblem(problemOf(thrown)?.replace(/^limit: /, ''))
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <Alert color="indigo" icon={<Icon name="budgets" />} title={t('budgets.propose')}>
      <Text size="sm" maw={640}>
        {t('budgets.proposeHelp')}
      </Text>
      <form onSubmit={(event) => void create(event)}>
        <Group gap="sm" mt="sm" align="flex-start">
          <AmountField
            label={t('policy.dailyBudget')}
            unit={unit}
            value={limit}
            error={problem}
            onChange={(value) => {
              setLimit(value)
              setProblem(undefined)
            }}
          />
          <Button type="submit" variant="default" mt={24} loading={isBusy} disabled={limit === ''}>
            {t('budgets.setDaily')}
          </Button>
        </Group>
      </form>
    </Alert>
  )
}
