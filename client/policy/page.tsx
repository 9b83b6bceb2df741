/** Shows an agent's model policy and its allowed models in order. */

import { Badge, Group, List, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import { modelsQuery, policyQuery, useAgent } from '../agents/queries.ts'
import type { ModelPolicy } from '../api.ts'
import { LeaveGuard } from '../components/Dialog.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import type { PlainKey } from '../strings/catalogue.ts'
import { t } from '../strings/language.ts'
import { PolicyForm } from './PolicyForm.tsx'
import { toLabel, usePolicy } from './use-policy.ts'

export function PolicyPage() {
  const { agent_id: id } = useAgent()
  const { data: policy, error, refetch } = useQuery(policyQuery(id))
  if (policy !== undefined) return <Policy key={id} policy={policy} />
  if (error === null) return <Loading what="policy" rows={3} height={96} />
  return <Failed error={error} what="policy" retry={() => void refetch()} />
}

function Policy({ policy }: { readonly policy: ModelPolicy }) {
  const { data: models = [], error, refetch } = useQuery(modelsQuery)
  const editing = usePolicy(policy)
  const isDirty = useRef(false)
  isDirty.current = editing.isDirty
  return (
    <>
      {error === null ? null : <Failed error={error} what="models" retry={() => void refetch()} />}
      <div className="two-columns">
        <PolicyForm policy={policy} editing={editing} models={models} />
        <Effective policy={policy} />
      </div>
      <LeaveGuard isDirty={isDirty} loss={t('common.leavePolicy')} />
    </>
  )
}

const reasons = {
  policy: 'policy.becausePolicy',
  yaml: 'policy.becauseYaml',
  none: 'policy.becauseNone',
} as const satisfies Readonly<Record<ModelPolicy['source'], PlainKey>>

function Effective({ policy }: { readonly policy: ModelPolicy }) {
  const { effective_models: models, source, allowed_models: allowed } = policy
  const others = models.filter(({ role }) => role === 'allowed')
  return (
    <Stack gap="sm" component="section" className="panel" p="md" aria-label={t('policy.effective')}>
      <Title order={2}>{t('policy.effective')}</Title>
      {models.length === 0 ? <Text size="sm">{t('policy.noneAvailable')}</Text> : null}
      <List type="ordered" spacing="xs" size="sm" className="effective">
        {models
          .filter(({ role }) => role !== 'allowed')
          .map((model) => (
            <List.Item key={toLabel(model)}>
              <Group gap="xs">
                <Text size="sm" fw={500}>
                  {toLabel(model)}
                </Text>
                <Badge size="sm" variant="light" className="accent-badge">
                  {t(model.role === 'default' ? 'policy.default' : 'policy.fallback')}
                </Badge>
              </Group>
              <Text size="xs" c="dimmed">
                {model.role === 'default' ? t(reasons[source]) : t('policy.fallbackTried')}
              </Text>
            </List.Item>
          ))}
      </List>
      {others.length === 0 ? null : (
        <>
          <Text size="sm">{t(allowed.length === 0 ? 'policy.otherAny' : 'policy.otherAllowed')}</Text>
          <Text size="sm" c="dimmed">
            {others.map(toLabel).join(', ')}
          </Text>
        </>
      )}
    </Stack>
  )
}
