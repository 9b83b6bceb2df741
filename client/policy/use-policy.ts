/** Manages the edited model policy and saves it. */

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { policyQuery } from '../agents/queries.ts'
import type { Inputs, ModelPolicy } from '../api.ts'
import { api } from '../api.ts'
import { problemOf } from '../failure.ts'
import { showDone } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'

type Body = Omit<Inputs['agents']['replaceModelPolicy'], 'agent_id'>

/** The editable part of a policy. */
export type PolicyDraft = Required<
  Pick<
    Body,
    'default_model' | 'allowed_models' | 'fallback_models' | 'degrade' | 'max_output_tokens' | 'budget'
  >
>

export interface PolicyEditing {
  readonly draft: PolicyDraft
  readonly isDirty: boolean
  readonly isSaving: boolean
  readonly error: string | undefined
  change(changes: Partial<PolicyDraft>): void
  save(): void
  discard(): void
}

export function usePolicy(saved: ModelPolicy): PolicyEditing {
  const queries = useQueryClient()
  const [changes, setChanges] = useState<Partial<PolicyDraft>>({})
  const draft: PolicyDraft = {
    default_model: saved.source === 'policy' ? saved.default_model : null,
    allowed_models: saved.allowed_models,
    fallback_models: saved.fallback_models,
    degrade: saved.degrade,
    max_output_tokens: saved.max_output_tokens,
    budget: saved.budget,
    ...changes,
  }
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => {
      const degrade = draft.degrade.toSorted((one, other) => one.at - other.at)
      return api.agents.replaceModelPolicy.mutate({ agent_id: saved.agent_id, ...draft, degrade })
    },
    onSuccess: async (policy) => {
      setChanges({})
      queries.setQueryData(policyQuery(saved.agent_id).queryKey, policy)
      await queries.invalidateQueries({ queryKey: ['agents'] })
      showDone(t('policy.saved'))
    },
  })
  return {
    draft,
    isDirty: Object.keys(changes).length > 0,
    isSaving: isPending,
    error: problemOf(error),
    change: (more) => setChanges((now) => ({ ...now, ...more })),
    save: () => mutate(),
    discard: () => setChanges({}),
  }
}

interface Named {
  readonly provider: string
  /** Absent or null for all of the provider's models. */
  readonly model?: string | null | undefined
}

export function toValue({ provider, model }: Named): string {
  return JSON.stringify(model == null ? [provider] : [provider, model])
}

export function fromValue(value: string): { provider: string; model?: string } {
  const [provider = '', model] = JSON.parse(value) as string[]
  return model === undefined ? { provider } : { provider, model }
}

export function toLabel({ provider, model }: Named): string {
  return model == null ? t('policy.allOf', { provider }) : `${provider}/${model}`
}

/** Returns the offered models, followed by chosen models that are no longer offered. */
export function listOptions(offered: readonly Named[], chosen: readonly Named[]) {
  const values = new Set(offered.map(toValue))
  const gone = chosen.filter((one) => !values.has(toValue(one)))
  return [
    ...offered.map((one) => ({ value: toValue(one), label: toLabel(one) })),
    ...gone.map((one) => ({ value: toValue(one), label: t('policy.unavailable', { name: toLabel(one) }) })),
  ]
}
