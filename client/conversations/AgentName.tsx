/** Shows the name of a conversation's agent. */
import { Code, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { agentsQuery } from '../agents/queries.ts'

export function AgentName({ id }: { readonly id: string | null | undefined }) {
  const { data: agents } = useQuery(agentsQuery)
  if (id == null)
    return (
      <Text span size="sm" c="dimmed">
        No agent
      </Text>
    )
  const name = agents?.find((agent) => agent.id === id)?.name
  return name === undefined ? <Code>{id}</Code> : <bdi>{name}</bdi>
}
