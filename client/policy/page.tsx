/** Shows an agent's model policy and its allowed models in order. */

import { Badge, Group, List, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import { modelsQuery, policyQuery, useAgent } from '../agents/queries.ts'
import type { ModelPolicy } from '../api.ts'
import { LeaveGuard } from '../components/Dialog.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
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

const reasons: Readonly<Record<ModelPolicy['source'], string>> = {
  policy: 'the policy sets it as the default',
  yaml: 'the definition specifies it and the policy allows it',
  none: 'neither the policy nor the definition specifies a model that the agent can use, so this is the server’s default or the first allowed model',
}

function Effective({ policy }: { readonly policy: ModelPolicy }) {
  const { effective_models: models, source, allowed_models: allowed } = policy
  const others = models.filter(({ role }) => role === 'allowed')
  return (
    <Stack gap="sm" component="section" className="panel" p="md" aria-label="In effect now">
      <Title order={2}>In effect now</Title>
      {models.length === 0 ? (
        <Text size="sm">No model is available. Allow a model that a provider lists.</Text>
      ) : null}
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
                  {model.role}
                </Badge>
              </Group>
              <Text size="xs" c="dimmed">
                {model.role === 'default'
                  ? `Used if a request does not specify a model: ${reasons[source]}.`
                  : 'Tried if the models above fail before their response starts.'}
              </Text>
            </List.Item>
          ))}
      </List>
      {others.length === 0 ? null : (
        <>
          <Text size="sm">
            Requests can also use {allowed.length === 0 ? 'any other model' : 'these allowed models'}:
          </Text>
          <Text size="sm" c="dimmed">
            {others.map(toLabel).join(', ')}
          </Text>
        </>
      )}
    </Stack>
  )
}
