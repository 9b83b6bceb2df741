/** Which pages may show the agent, and what one on a given address would see. */
import { Alert, Code, Group, List, Stack, Text, TextInput, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { readDefinition } from '../agents/definition-text.ts'
import { isRecord, valueAt } from '../agents/object-paths.ts'
import type { AgentDetail } from '../api.ts'
import { Icon } from '../shell/icons.tsx'
import { checkPage } from './origins.ts'

interface OriginCheckProps {
  readonly agentId: string
  readonly agent: PublicAgent
}

export function OriginCheck({ agentId, agent }: OriginCheckProps) {
  const { origins } = agent
  const [address, setAddress] = useState('')
  const verdict = checkPage(address, origins, window.location.origin)
  return (
    <Stack gap="sm" component="section" className="panel" p="md" aria-label="Allowed origins">
      <Group justify="space-between">
        <Title order={2}>Allowed origins</Title>
        <Link to="/agents/$agentId" params={{ agentId }} className="text-link">
          Change them in the editor
        </Link>
      </Group>
      {origins.length === 0 ? (
        <Text size="sm">Any site may show this agent: its definition names no origins.</Text>
      ) : (
        <Group gap={6}>
          {origins.map((origin) => (
            <Code key={origin}>{origin}</Code>
          ))}
        </Group>
      )}
      <TextInput
        label="What would a page on this address see?"
        placeholder="https://www.example.com"
        value={address}
        error={address.trim() !== '' && verdict === undefined ? 'is no address of a page' : undefined}
        onChange={(event) => setAddress(event.currentTarget.value)}
      />
      <div aria-live="polite">
        {verdict === undefined ? null : (
          <Alert
            color={verdict.isShown ? 'green' : 'red'}
            icon={<Icon name={verdict.isShown ? 'check' : 'cross'} />}
            title={verdict.isShown ? 'The chat is shown' : 'No chat is shown'}
          >
            <Text size="sm">{verdict.reason}</Text>
            {verdict.isShown ? <WhatIsSeen agent={agent} /> : null}
          </Alert>
        )}
      </div>
    </Stack>
  )
}

function WhatIsSeen({ agent }: { readonly agent: PublicAgent }) {
  const { title, greeting, starters, tools, pageTools } = agent
  return (
    <List size="sm" mt="xs" spacing={2}>
      <List.Item>Title: {title}</List.Item>
      <List.Item>Greeting: {greeting ?? 'none'}</List.Item>
      {starters.length === 0 ? null : <List.Item>Starters: {starters.join(' · ')}</List.Item>}
      <List.Item>Tools of the page it may use: {pageTools}</List.Item>
      {tools.length === 0 ? null : (
        <List.Item>Names and schemas of its own tools: {tools.join(', ')}</List.Item>
      )}
      <List.Item>The agent’s key, which may chat and nothing else. Never the instructions.</List.Item>
    </List>
  )
}

interface PublicAgent {
  readonly origins: readonly string[]
  readonly title: string
  readonly greeting: string | undefined
  readonly starters: readonly string[]
  readonly tools: readonly string[]
  /** In words. */
  readonly pageTools: string
}

export function readPublicAgent({ yaml, format, definition }: AgentDetail): PublicAgent {
  const value = readDefinition(yaml, format) ?? {}
  const title = valueAt(value, ['embed', 'title'])
  const greeting = valueAt(value, ['embed', 'greeting'])
  return {
    origins: textsAt(value, ['embed', 'origins']),
    title: typeof title === 'string' ? title : definition.name,
    greeting: typeof greeting === 'string' ? greeting : undefined,
    starters: textsAt(value, ['embed', 'starters']),
    tools: definition.tools.map((tool) => (typeof tool === 'string' ? tool : tool.name)),
    pageTools: describePageTools(value.pageTools),
  }
}

function textsAt(value: unknown, path: readonly string[]): string[] {
  const held = valueAt(value, path)
  return Array.isArray(held) ? held.map(String) : []
}

function describePageTools(policy: unknown): string {
  if (!isRecord(policy)) return 'all'
  const restricted = textsAt(policy, ['restricted'])
  if (restricted.length > 0) return `only ${restricted.join(', ')}`
  const blocked = textsAt(policy, ['blocked'])
  if (blocked.length > 0) return `all but ${blocked.join(', ')}`
  return 'restricted' in policy ? 'none' : 'all'
}
