/** Shows an agent's allowed origins, and checks a page URL against them. */

import { Alert, Code, Group, List, Stack, Text, TextInput, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { readDefinition } from '../agents/definition-text.ts'
import { isRecord, valueAt } from '../agents/object-paths.ts'
import type { AgentDetail } from '../api.ts'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
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
    <Stack gap="sm" component="section" className="panel" p="md" aria-label={t('embed.origins')}>
      <Group justify="space-between">
        <Title order={2}>{t('embed.origins')}</Title>
        <Link to="/agents/$agentId" params={{ agentId }} className="text-link">
          {t('embed.editOrigins')}
        </Link>
      </Group>
      {origins.length === 0 ? (
        <Text size="sm">{t('embed.anySite')}</Text>
      ) : (
        <Group gap={6}>
          {origins.map((origin) => (
            <Code key={origin}>{origin}</Code>
          ))}
        </Group>
      )}
      <TextInput
        label={t('embed.checkUrl')}
        placeholder="https://www.example.com"
        value={address}
        error={address.trim() !== '' && verdict === undefined ? t('embed.enterUrl') : undefined}
        onChange={(event) => setAddress(event.currentTarget.value)}
      />
      <div aria-live="polite">
        {verdict === undefined ? null : (
          <Alert
            color={verdict.isShown ? 'green' : 'red'}
            icon={<Icon name={verdict.isShown ? 'check' : 'cross'} />}
            title={t(verdict.isShown ? 'embed.shown' : 'embed.notShown')}
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
      <List.Item>{t('embed.titleIs', { text: title })}</List.Item>
      <List.Item>
        {greeting === undefined ? t('embed.noGreeting') : t('embed.greetingIs', { text: greeting })}
      </List.Item>
      {starters.length === 0 ? null : (
        <List.Item>{t('embed.startersAre', { list: starters.join(' · ') })}</List.Item>
      )}
      <List.Item>{pageTools}</List.Item>
      {tools.length === 0 ? null : (
        <List.Item>{t('embed.serverToolsAre', { list: tools.join(', ') })}</List.Item>
      )}
      <List.Item>{t('embed.keyOnly')}</List.Item>
    </List>
  )
}

interface PublicAgent {
  readonly origins: readonly string[]
  readonly title: string
  readonly greeting: string | undefined
  readonly starters: readonly string[]
  readonly tools: readonly string[]
  /** Summary of the policy for page tools. */
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
  if (!isRecord(policy)) return t('embed.pageToolsAll')
  const restricted = textsAt(policy, ['restricted'])
  if (restricted.length > 0) return t('embed.pageToolsOnly', { list: restricted.join(', ') })
  const blocked = textsAt(policy, ['blocked'])
  if (blocked.length > 0) return t('embed.pageToolsExcept', { list: blocked.join(', ') })
  return t('restricted' in policy ? 'embed.pageToolsNone' : 'embed.pageToolsAll')
}
