/** Which models an agent may use: what one decides, and what follows from it. */
import { useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import { useAgent } from '../agents/agent/use-agent.ts'
import { modelsQuery, policyQuery } from '../agents/queries.ts'
import { LeaveGuard } from '../components/LeaveGuard.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import type { ModelPolicy } from '../types.ts'
import { Effective } from './Effective.tsx'
import { PolicyForm } from './PolicyForm.tsx'
import { usePolicy } from './use-policy.ts'

export function PolicyPage() {
  const { agent_id: id } = useAgent()
  const { data: policy, error, refetch } = useQuery(policyQuery(id))
  if (policy !== undefined) return <Policy key={id} policy={policy} />
  if (error === null) return <Loading what="the model policy" rows={3} height={96} />
  return <Failed error={error} what="The model policy" retry={() => void refetch()} />
}

function Policy({ policy }: { readonly policy: ModelPolicy }) {
  const { data: models = [], error, refetch } = useQuery(modelsQuery)
  const editing = usePolicy(policy)
  const isDirty = useRef(false)
  isDirty.current = editing.isDirty
  return (
    <>
      {error === null ? null : (
        <Failed error={error} what="The models to choose from" retry={() => void refetch()} />
      )}
      <div className="two-columns">
        <PolicyForm policy={policy} editing={editing} models={models} />
        <Effective policy={policy} />
      </div>
      <LeaveGuard isDirty={isDirty} what="the model policy" />
    </>
  )
}
