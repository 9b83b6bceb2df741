/** Shows how to embed an agent: the code, a preview and the allowed origins. */
import { Stack, Tabs, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { listedAgentQuery, modelsQuery, useAgent } from '../agents/queries.ts'
import { CodeBlock } from '../components/CopyButton.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { TextLink } from '../components/text.tsx'
import { useStoredFirstRun } from '../first-run/first-run.ts'
import { defaultLooks, type Looks, renderCurl, renderReact, renderScript } from './appearance.ts'
import { OriginCheck, readPublicAgent } from './OriginCheck.tsx'
import { Preview } from './Preview.tsx'

export function EmbedPage() {
  const agent = useAgent()
  const { data: listed, error, refetch } = useQuery(listedAgentQuery(agent.agent_id))
  const models = useQuery(modelsQuery)
  // Waits for the models, so that the preview does not move when its notice appears.
  const areModelsPending = models.data === undefined && models.failureReason === null
  const [looks, setLooks] = useState(defaultLooks)
  const agentKey = listed?.agent_key
  if (agentKey === undefined && error !== null) {
    return <Failed error={error} what="agentKey" retry={() => void refetch()} />
  }
  if (agentKey === undefined || areModelsPending) return <Loading what="agentKey" rows={3} height={120} />
  return (
    <Stack gap="md">
      <Preview agentKey={agentKey} looks={looks} onChange={setLooks} />
      <div className="two-columns">
        <Snippets agentId={agent.agent_id} agentKey={agentKey} looks={looks} />
        <OriginCheck agentId={agent.agent_id} agent={readPublicAgent(agent)} />
      </div>
    </Stack>
  )
}

interface SnippetsProps {
  readonly agentId: string
  readonly agentKey: string
  readonly looks: Looks
}

function Snippets({ agentId, agentKey, looks }: SnippetsProps) {
  const { as = 'script' } = useSearch({ from: '/shell/agents/$agentId/embed' })
  const navigate = useNavigate({ from: '/agents/$agentId/embed' })
  const [, changeFirstRun] = useStoredFirstRun()
  const onCopy = () => changeFirstRun({ isEmbedded: true })
  const embedding = { origin: window.location.origin, agentKey, looks }
  return (
    <Stack gap="sm" component="section" className="panel" p="md" aria-label="Code">
      <Title order={2}>Code</Title>
      <Tabs
        value={as}
        keepMounted={false}
        onChange={(next) => void navigate({ search: { as: next as typeof as }, replace: true })}
      >
        <Tabs.List mb="sm">
          <Tabs.Tab value="script">Script</Tabs.Tab>
          <Tabs.Tab value="react">React</Tabs.Tab>
          <Tabs.Tab value="api">API</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="script">
          <CodeBlock
            what="Script for the end of the page body"
            code={renderScript(embedding)}
            onCopy={onCopy}
          />
        </Tabs.Panel>
        <Tabs.Panel value="react">
          <CodeBlock what="React component" code={renderReact(embedding)} onCopy={onCopy} />
        </Tabs.Panel>
        <Tabs.Panel value="api">
          <CodeBlock what="API request" code={renderCurl(embedding)} onCopy={onCopy} />
        </Tabs.Panel>
      </Tabs>
      <Text size="xs" c="dimmed">
        The agent key may be public: it can only chat with this agent. To limit its use, set allowed origins
        and a budget in the model policy, or{' '}
        <TextLink to="/keys" search={{ tab: 'agent', agent: agentId }} underline="always" inherit>
          rotate the key
        </TextLink>
        .
      </Text>
    </Stack>
  )
}
