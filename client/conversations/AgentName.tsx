/** Shows the name of a conversation's agent. */
import { Code, Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { agentNamesQuery } from '../agents/queries.ts'
import { t } from '../strings/language.ts'

interface AgentNameProps {
  readonly id: string | null | undefined
  /** The ids of all agents on the page, so that one request loads their names. */
  readonly among?: readonly string[]
}

export function AgentName({ id, among }: AgentNameProps) {
  const { data: names, isPending } = useQuery(agentNamesQuery(among ?? (id == null ? [] : [id])))
  if (id == null)
    return (
      <Text span size="sm" c="dimmed">
        {t('conversations.noAgent')}
      </Text>
    )
  if (isPending) return <Skeleton component="span" display="inline-block" h="1em" w="10ch" />
  const name = names?.get(id)
  return name === undefined ? <Code>{id}</Code> : <bdi>{name}</bdi>
}
