/** Shows the trace of a chat: the models, attempts, fallbacks, tools, tokens and times for each message. */

import { ActionIcon, Alert, Badge, Button, Code, Group, Stack, Text, Textarea } from '@mantine/core'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { renderMilliseconds, renderUsd } from '../../format.ts'
import { Icon } from '../../shell/icons.tsx'
import { t } from '../../strings/language.ts'
import type { TraceItem, TraceTurn } from './trace.ts'

interface TraceProps {
  readonly turns: readonly TraceTurn[]
  /** Sends the changed message at this position again, in all chats. */
  readonly onResend: (text: string, position: number) => void
  readonly onSave: (question: string) => void
  readonly isSaved: (question: string) => boolean
}

export function TraceView({ turns, ...actions }: TraceProps) {
  const end = useRef<HTMLDivElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new message scrolls to the end
  useEffect(() => {
    end.current?.scrollIntoView({ block: 'nearest' })
  }, [turns.length])
  if (turns.length === 0) {
    return (
      <Text size="xs" c="dimmed" p="sm">
        {t('trial.empty')}
      </Text>
    )
  }
  return (
    <Stack gap="md" p="sm">
      {turns.map((turn, position) => (
        <TurnView key={turn.id} turn={turn} position={position} {...actions} />
      ))}
      <div ref={end} />
    </Stack>
  )
}

interface TurnProps extends Omit<TraceProps, 'turns'> {
  readonly turn: TraceTurn
  readonly position: number
}

function TurnView({ turn, position, onResend, onSave, isSaved }: TurnProps) {
  const [isEdited, setIsEdited] = useState(false)
  const { question, items, problem, requestId } = turn
  return (
    <section aria-label={t('trial.traceOf', { question })}>
      {isEdited ? (
        <EditQuestion
          question={question}
          onCancel={() => setIsEdited(false)}
          onSend={(text) => {
            setIsEdited(false)
            onResend(text, position)
          }}
        />
      ) : (
        <Group gap={2} wrap="nowrap" align="flex-start">
          <Text size="sm" fw={500} flex={1} className="trace-question">
            {question}
          </Text>
          <ActionIcon
            variant="subtle"
            color="gray"
            size="sm"
            aria-label={t('trial.resendMenu')}
            title={t('trial.resendMenu')}
            onClick={() => setIsEdited(true)}
          >
            <Icon name="edit" size={14} />
          </ActionIcon>
          <ActionIcon
            variant="subtle"
            color="gray"
            size="sm"
            aria-label={t('trial.saveQuestion')}
            title={t('trial.saveQuestion')}
            disabled={isSaved(question)}
            onClick={() => onSave(question)}
          >
            <Icon name={isSaved(question) ? 'check' : 'plus'} size={14} />
          </ActionIcon>
        </Group>
      )}
      <Facts turn={turn} />
      {items.length === 0 ? null : (
        <ol className="trace-items">
          {items.map((item, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: items are only added at the end
            <ItemView key={index} item={item} totalMs={turn.totalMs} />
          ))}
        </ol>
      )}
      {problem === undefined ? null : (
        <Alert color="red" role="alert" p="xs" mt="xs">
          {problem}
          {requestId === undefined ? null : (
            <Text size="xs" c="dimmed">
              {t('trial.requestId', { id: requestId })}
            </Text>
          )}
        </Alert>
      )}
      <RawData turn={turn} />
    </section>
  )
}

interface EditQuestionProps {
  readonly question: string
  readonly onSend: (text: string) => void
  readonly onCancel: () => void
}

function EditQuestion({ question, onSend, onCancel }: EditQuestionProps) {
  const [text, setText] = useState(question)
  const send = (event: FormEvent) => {
    event.preventDefault()
    if (text.trim() !== '') onSend(text.trim())
  }
  return (
    <form onSubmit={send}>
      <Textarea
        label={t('trial.editMessage')}
        description={t('trial.editMessageAbout')}
        size="xs"
        autosize
        minRows={1}
        maxRows={8}
        autoFocus
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Group gap="xs" mt={6} mb={4} justify="flex-end">
        <Button size="compact-xs" variant="default" onClick={onCancel}>
          {t('common.cancel')}
        </Button>
        <Button size="compact-xs" type="submit">
          {t('trial.resend')}
        </Button>
      </Group>
    </form>
  )
}

/** Shows the model, the tokens and the times of an answer. */
export function Facts({ turn }: { readonly turn: TraceTurn }) {
  const { status, model, isFallback } = turn
  return (
    <Group gap={6} aria-label={t('trial.details')} role="group">
      {status === 'done' ? null : (
        <Badge color={status === 'failed' ? 'red' : 'gray'} variant="default" size="sm">
          {t(`trial.${status}`)}
        </Badge>
      )}
      {isFallback ? (
        <Badge variant="default" size="sm">
          {t('trial.fallback')}
        </Badge>
      ) : null}
      <Text size="xs" c="dimmed">
        {[model, ...listFigures(turn)].filter((fact) => fact !== undefined).join(' · ')}
      </Text>
    </Group>
  )
}

function listFigures({
  attempts,
  promptTokens,
  completionTokens,
  cost,
  firstTextMs,
  totalMs,
  status,
}: TraceTurn): string[] {
  if (status === 'running' || status === 'waiting') return []
  return [
    ...(promptTokens + completionTokens === 0
      ? []
      : [t('conversations.tokensSum', { input: promptTokens, output: completionTokens })]),
    ...(cost === undefined ? [] : [renderUsd(cost)]),
    ...(firstTextMs === undefined ? [] : [t('trial.firstText', { time: renderMilliseconds(firstTextMs) })]),
    t('trial.totalTime', { time: renderMilliseconds(totalMs) }),
    ...(attempts > 1 ? [t('trial.attempts', { count: attempts })] : []),
  ]
}

function ItemView({ item, totalMs }: { readonly item: TraceItem; readonly totalMs: number }) {
  if (item.kind === 'route') return <RouteItem item={item} />
  return item.kind === 'model' ? (
    <ModelItem item={item} totalMs={totalMs} />
  ) : (
    <ToolItem item={item} totalMs={totalMs} />
  )
}

function RouteItem({ item }: { readonly item: Extract<TraceItem, { kind: 'route' }> }) {
  const {
    models: [first, ...fallbacks],
    isDegraded,
  } = item
  return (
    <li>
      <Text size="xs">
        {t('trial.route', {
          models: [first, ...fallbacks.map((model) => t('trial.thenModel', { model }))].join(''),
        })}
      </Text>
      {isDegraded ? (
        <Text size="xs" c="dimmed">
          {t('trial.routeByBudget')}
        </Text>
      ) : null}
    </li>
  )
}

function ModelItem({ item, totalMs }: { readonly item: ModelCall; readonly totalMs: number }) {
  const { model, startMs, firstMs, endMs, isFallback, failure, promptTokens = 0, completionTokens = 0 } = item
  const facts = [
    isFallback ? t('trial.asFallback') : undefined,
    firstMs === undefined
      ? undefined
      : t('trial.firstOutput', { time: renderMilliseconds(firstMs - startMs) }),
    promptTokens + completionTokens === 0
      ? undefined
      : t('conversations.tokensSum', { input: promptTokens, output: completionTokens }),
  ].filter((fact) => fact !== undefined)
  return (
    <li data-failed={failure !== undefined}>
      <Timed name={model} icon="agents" item={item} totalMs={totalMs} />
      <Text size="xs" c={failure === undefined ? 'dimmed' : 'var(--mantine-color-error)'}>
        {failure === undefined ? facts.join(' · ') : t('trial.failedWith', { reason: failure })}
      </Text>
      {endMs === undefined && failure === undefined ? <span className="trace-running" /> : null}
    </li>
  )
}

type ModelCall = Extract<TraceItem, { kind: 'model' }>
type ToolCall = Extract<TraceItem, { kind: 'tool' }>

function ToolItem({ item, totalMs }: { readonly item: ToolCall; readonly totalMs: number }) {
  const { name, argumentsText, result, place } = item
  const title = name.replace(/^postMessage_/, '')
  return (
    <li>
      <Timed name={title} icon="tool" item={item} totalMs={totalMs} />
      <Text size="xs" c="dimmed">
        {t(place === 'server' ? 'trial.serverTool' : 'trial.ofPage')}
      </Text>
      <details className="trace-data">
        <summary>{t('trial.argumentsAndResult')}</summary>
        <Data label={t('conversations.argumentsOf', { name: title })} text={prettify(argumentsText)} />
        {result === undefined ? null : (
          <Data label={t('trial.resultOf', { name: title })} text={prettify(result)} />
        )}
      </details>
    </li>
  )
}

interface TimedProps {
  readonly name: string
  readonly icon: 'agents' | 'tool'
  readonly item: ModelCall | ToolCall
  readonly totalMs: number
}

/** Shows a name, its duration, and a bar for its share of the turn's time. */
function Timed({ name, icon, item: { startMs, endMs }, totalMs }: TimedProps) {
  const share = (ms: number) => `${Math.min(100, Math.max(0, (ms / Math.max(totalMs, 1)) * 100))}%`
  const bar = useRef<HTMLSpanElement>(null)
  useEffect(() => {
    bar.current?.style.setProperty('left', share(startMs))
    bar.current?.style.setProperty('width', share((endMs ?? totalMs) - startMs))
  })
  return (
    <>
      <Group gap={6} wrap="nowrap">
        <Icon name={icon} size={14} />
        <Text size="xs" fw={500} flex={1} className="trace-name">
          {name}
        </Text>
        <Text size="xs" c="dimmed" className="trace-time">
          {endMs === undefined ? '…' : renderMilliseconds(endMs - startMs)}
        </Text>
      </Group>
      <span className="trace-bar">
        <span ref={bar} />
      </span>
    </>
  )
}

function RawData({ turn: { raw } }: { readonly turn: TraceTurn }) {
  return (
    <details className="trace-data">
      <summary>{t('trial.rawDataOf', { count: raw.length })}</summary>
      <Data label={t('trial.rawData')} text={JSON.stringify(raw, null, 2)} />
    </details>
  )
}

/** Shows text in a region that can be scrolled with the keyboard. */
function Data({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <Code block tabIndex={0} role="region" aria-label={label}>
      {text}
    </Code>
  )
}

/** Indents JSON; returns any other text unchanged. */
function prettify(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
