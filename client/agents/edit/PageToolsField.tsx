/** Which tools of the page the agent may use. Contract: Agent, `pageTools`. */
import { SegmentedControl, Stack, Text } from '@mantine/core'
import { isRecord } from '../object-paths.ts'
import { LinesField, useField } from './fields.tsx'

const choices = [
  { value: 'all', label: 'All' },
  { value: 'restricted', label: 'Only these' },
  { value: 'blocked', label: 'All but these' },
] as const

type Choice = (typeof choices)[number]['value']

const explanations: Readonly<Record<Choice, string>> = {
  all: 'Whatever tool a page offers, the agent may call.',
  restricted: 'The agent may call these tools of a page and no others.',
  blocked: 'The agent may call every tool of a page but these.',
}

export function PageToolsField() {
  const { value, error, isDisabled, set } = useField(['pageTools'])
  const choice = choiceOf(value)
  return (
    <Stack gap="xs">
      <SegmentedControl
        aria-label="Tools of the page"
        data={[...choices]}
        value={choice}
        disabled={isDisabled}
        onChange={(next) => set(toPolicy(next as Choice, namesOf(value)))}
      />
      <Text size="sm" c={error === undefined ? 'dimmed' : 'var(--mantine-color-error)'}>
        {error ?? explanations[choice]}
      </Text>
      {choice === 'all' ? null : (
        <LinesField
          key={choice}
          path={['pageTools', choice]}
          label="Names"
          about="One a line, as the page calls them."
          placeholder="open_page"
        />
      )}
    </Stack>
  )
}

function choiceOf(value: unknown): Choice {
  if (!isRecord(value)) return 'all'
  return 'blocked' in value ? 'blocked' : 'restricted'
}

function namesOf(value: unknown): unknown[] {
  const names = isRecord(value) ? (value.restricted ?? value.blocked) : undefined
  return Array.isArray(names) ? names : []
}

/** The default is not written down. */
function toPolicy(choice: Choice, names: readonly unknown[]): unknown {
  return choice === 'all' ? undefined : { [choice]: [...names] }
}
