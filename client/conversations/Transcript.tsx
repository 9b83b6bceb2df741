/** Shows the messages and tool calls of a conversation, grouped by turn, as plain text. */
import { Code, Group, Stack, Text } from '@mantine/core'
import { Ago } from '../components/text.tsx'
import { renderMilliseconds } from '../format.ts'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { findResults, isShownWithCall, prettify, textOf, toEntries } from './entries.ts'
import type { Item, Turn } from './queries.ts'
import { explain } from './status.tsx'

interface TranscriptProps {
  readonly items: readonly Item[]
  readonly turns: readonly Turn[]
  /** Whether all items are loaded. */
  readonly isWhole: boolean
}

export function Transcript({ items, turns, isWhole }: TranscriptProps) {
  const results = findResults(items)
  const entries = toEntries(items, turns, isWhole)
  if (entries.length === 0)
    return (
      <Text c="dimmed" size="sm">
        {t('conversations.noMessages')}
      </Text>
    )
  return (
    <ol className="transcript" aria-label={t('conversations.transcript')}>
      {entries.map(({ key, turn, items: own }) => (
        <li key={key} className="panel transcript-turn" data-status={turn?.status}>
          <TurnHead turn={turn} />
          {own
            .filter((item) => !isShownWithCall(item, items))
            .map((item) => (
              <ItemView key={item.id} item={item} result={results.get(String(item.call_id))} />
            ))}
          {turn === undefined ? null : <TurnEnd turn={turn} />}
        </li>
      ))}
    </ol>
  )
}

function TurnHead({ turn }: { readonly turn: Turn | undefined }) {
  return (
    <Group justify="space-between" gap="xs" className="transcript-head">
      <Text size="xs" fw={500}>
        {turn === undefined
          ? t('conversations.addedOutside')
          : t('conversations.turn', { number: turn.number })}
      </Text>
      {turn === undefined ? null : (
        <Text size="xs" c="dimmed" component="span">
          <Ago seconds={turn.created_at} />
        </Text>
      )}
    </Group>
  )
}

/** Shows why a turn is not complete, then its model, tokens and duration. */
function TurnEnd({ turn }: { readonly turn: Turn }) {
  const { provider, model, prompt_tokens: input, completion_tokens: output, duration_ms: ms, status } = turn
  const problem = explain(turn)
  const facts = [
    model === null ? undefined : [provider, model].filter((part) => part !== null).join('/'),
    input + output === 0 ? undefined : t('conversations.tokensSum', { input, output }),
    ms === null ? undefined : renderMilliseconds(ms),
    turn.background ? t('conversations.background') : undefined,
    turn.kind === 'continuation' ? t('conversations.continuation') : undefined,
  ].filter((fact) => fact !== undefined)
  return (
    <Stack gap={4}>
      {problem === undefined ? null : (
        <Group gap={6} wrap="nowrap" className="transcript-problem" data-status={status}>
          <Icon name={status === 'failed' ? 'warning' : 'stop'} size={16} />
          <Text size="sm">{problem}</Text>
        </Group>
      )}
      {status === 'in_progress' || status === 'queued' ? (
        <Text size="sm" c="dimmed" role="status">
          {t('conversations.answering')}
        </Text>
      ) : null}
      {facts.length === 0 ? null : (
        <Text size="xs" c="dimmed">
          {facts.join(' · ')}
        </Text>
      )}
    </Stack>
  )
}

interface ItemProps {
  readonly item: Item
  readonly result: Item | undefined
}

function ItemView({ item, result }: ItemProps) {
  if (item.type === 'message') return <Message item={item} />
  if (item.type === 'function_call') {
    const name = String(item.name)
    return (
      <Fold label={name} icon="tool">
        <Data
          label={t('conversations.argumentsOf', { name })}
          heading={t('conversations.arguments')}
          text={textOf(item.arguments)}
        />
        <Data
          label={t('conversations.resultOf', { name })}
          heading={t('conversations.result')}
          text={textOf(result?.output)}
        />
      </Fold>
    )
  }
  if (item.type === 'function_call_output')
    return (
      <Fold label={t('conversations.toolResult')} icon="tool">
        <Data
          label={t('conversations.toolResult')}
          heading={t('conversations.result')}
          text={textOf(item.output)}
        />
      </Fold>
    )
  const thought = [textOf(item.summary), textOf(item.content)].filter((text) => text !== '').join('\n')
  return thought === '' ? null : (
    <Fold label={t('conversations.reasoning')} icon="dots">
      <p className="transcript-text">{thought}</p>
    </Fold>
  )
}

const speakers: Readonly<Record<string, string>> = {
  visitor: t('conversations.user'),
  model: t('conversations.model'),
  person: t('conversations.person'),
  page: t('conversations.client'),
  tool: t('conversations.tool'),
  service: 'Parley',
}

function Message({ item }: Pick<ItemProps, 'item'>) {
  const author = item.parley?.author ?? 'model'
  const role = String(item.role)
  const speaker = author === 'page' ? t('conversations.clientRole', { role }) : (speakers[author] ?? author)
  const text = textOf(item.content)
  return (
    <div className="transcript-message" data-author={author}>
      <Text size="xs" c="dimmed" fw={500}>
        {speaker}
      </Text>
      <p className="transcript-text" dir="auto">
        {text === '' ? <em>{t('conversations.noText')}</em> : text}
      </p>
    </div>
  )
}

interface FoldProps {
  readonly label: string
  readonly icon: 'tool' | 'dots'
  readonly children: React.ReactNode
}

function Fold({ label, icon, children }: FoldProps) {
  return (
    <details className="transcript-fold">
      <summary>
        <Icon name={icon} size={14} />
        <bdi>{label}</bdi>
      </summary>
      <div className="transcript-fold-body">{children}</div>
    </details>
  )
}

interface DataProps {
  readonly label: string
  readonly heading: string
  readonly text: string
}

function Data({ label, heading, text }: DataProps) {
  return (
    <>
      <Text size="xs" c="dimmed">
        {heading}
      </Text>
      {text === '' ? (
        <Text size="sm" c="dimmed">
          {t('conversations.notStored')}
        </Text>
      ) : (
        <Code block tabIndex={0} className="transcript-code" aria-label={label} role="region">
          {prettify(text)}
        </Code>
      )}
    </>
  )
}
