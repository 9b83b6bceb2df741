/** Models as the fields of the policy's form hold them: a provider and its own id in one text. */

interface Named {
  readonly provider: string
  /** All of the provider's without it. */
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
  return model == null ? `All of ${provider}` : `${provider}/${model}`
}

/** Those that are offered, and those that were chosen and are not offered any more. */
export function listOptions(offered: readonly Named[], chosen: readonly Named[]) {
  const values = new Set(offered.map(toValue))
  const gone = chosen.filter((one) => !values.has(toValue(one)))
  return [
    ...offered.map((one) => ({ value: toValue(one), label: toLabel(one) })),
    ...gone.map((one) => ({ value: toValue(one), label: `${toLabel(one)} (not there now)` })),
  ]
}
