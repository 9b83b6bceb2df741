/** What the agent can use now, and why. */
import { Badge, Group, List, Stack, Text, Title } from '@mantine/core'
import type { ModelPolicy } from '../types.ts'
import { toLabel } from './names.ts'

const reasons: Readonly<Record<ModelPolicy['source'], string>> = {
  policy: 'the policy names it as the default',
  yaml: 'the definition names it, and the policy allows it',
  none: 'neither policy nor definition names one: it is the server’s default, or the first that is allowed',
}

export function Effective({ policy }: { readonly policy: ModelPolicy }) {
  const { effective_models: models, source, allowed_models: allowed } = policy
  const others = models.filter(({ role }) => role === 'allowed')
  return (
    <Stack gap="sm" component="section" className="panel" p="md" aria-label="In effect now">
      <Title order={2}>In effect now</Title>
      {models.length === 0 ? (
        <Text size="sm">No model can be used: what the policy allows is not there.</Text>
      ) : null}
      <List type="ordered" spacing="xs" size="sm" className="effective">
        {models
          .filter(({ role }) => role !== 'allowed')
          .map((model) => (
            <List.Item key={toLabel(model)}>
              <Group gap="xs">
                <Text size="sm" fw={600}>
                  {toLabel(model)}
                </Text>
                <Badge size="sm" variant="light" className="accent-badge">
                  {model.role}
                </Badge>
              </Group>
              <Text size="xs" c="dimmed">
                {model.role === 'default'
                  ? `Answers when the caller names none: ${reasons[source]}.`
                  : 'Tried when the ones above fail before their first word.'}
              </Text>
            </List.Item>
          ))}
      </List>
      {others.length === 0 ? null : (
        <>
          <Text size="sm">
            A caller may also name {allowed.length === 0 ? 'any other' : 'these, which the policy allows'}:
          </Text>
          <Text size="sm" c="dimmed">
            {others.map(toLabel).join(', ')}
          </Text>
        </>
      )}
    </Stack>
  )
}
