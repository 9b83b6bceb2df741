/**
 * Shows one chat of a trial: the widget's frame, the choice of the model, and forms for the results of page
 * tools.
 */

import { ActionIcon, Button, Group, Select, Text, Textarea, useComputedColorScheme } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type FormEvent, useEffect, useMemo, useRef, useState } from 'react'
import type { MockTool } from '../../../widget/frame/trial/messages.ts'
import { api, type DefinitionFormat, type Outputs } from '../../api.ts'
import { Icon } from '../../shell/icons.tsx'
import { t } from '../../strings/language.ts'
import { modelsQuery } from '../queries.ts'
import { toFrameAddress, toFrameOptions } from './frame-options.ts'
import { type LaneRequest, LaneSession } from './lane-session.ts'
import type { Choice, Lane, PendingCall, Trial } from './trial.ts'

/** The definition to try, and its saved version. */
export interface TrialSubject {
  /** Undefined for an agent that has not been created yet. */
  readonly agentId: string | undefined
  readonly text: string
  readonly format: DefinitionFormat
  readonly savedText: string
}

interface LaneProps {
  readonly trial: Trial
  readonly lane: Lane
  readonly subject: TrialSubject
  readonly tools: readonly MockTool[]
  readonly isOnly: boolean
}

export function LaneView({ trial, lane, subject, tools, isOnly }: LaneProps) {
  const { frame, session, agent, isReady } = useSession({ trial, lane, subject, tools })
  const name = nameOf(lane.choice)
  return (
    <section
      className="lane"
      aria-label={t('trial.chatWith', { name })}
      onFocus={() => trial.showTrace(lane.id)}
    >
      <LaneHead trial={trial} lane={lane} subject={subject} isOnly={isOnly} />
      <div className="lane-stage" data-ready={isReady}>
        <iframe
          ref={frame}
          src={toFrameAddress(agent)}
          title={t('trial.chatWith', { name })}
          allow="clipboard-write"
        />
      </div>
      {lane.pending.map((call) => (
        <ToolAnswer
          key={call.id}
          call={call}
          onAnswer={(text) => session.current?.answerTool(call.id, text)}
        />
      ))}
    </section>
  )
}

/** Returns the choice's name for the user, such as `the draft`. */
function nameOf(choice: Choice): string {
  if (choice === 'draft') return t('trial.theDraft')
  return choice === 'saved' ? t('trial.theSaved') : choice.slice('model:'.length)
}

function LaneHead({ trial, lane, subject, isOnly }: Omit<LaneProps, 'tools'>) {
  const { data: models } = useQuery(modelsQuery)
  const data = [
    {
      group: t('trial.definition'),
      items: [
        { value: 'draft', label: t('trial.draft') },
        ...(subject.agentId === undefined ? [] : [{ value: 'saved', label: t('trial.saved') }]),
      ],
    },
    {
      group: t('trial.otherModel'),
      items: (models ?? []).map(({ id, provider, model }) => ({
        value: `model:${id}`,
        label: `${provider}/${model}`,
      })),
    },
  ]
  return (
    <Group gap={4} wrap="nowrap" className="lane-head">
      <Select
        aria-label={t('trial.what')}
        size="xs"
        flex={1}
        allowDeselect={false}
        data={data}
        value={lane.choice}
        onChange={(choice) => trial.changeLane(lane.id, () => ({ choice: choice as Choice }))}
      />
      {isOnly ? null : (
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={t('trial.removeChat', { name: nameOf(lane.choice) })}
          onClick={() => trial.removeLane(lane.id)}
        >
          <Icon name="cross" size={14} />
        </ActionIcon>
      )}
    </Group>
  )
}

interface ToolAnswerProps {
  readonly call: PendingCall
  readonly onAnswer: (text: string) => void
}

/** Asks the tester for the result of a page tool. */
function ToolAnswer({ call: { name, argumentsText }, onAnswer }: ToolAnswerProps) {
  const [text, setText] = useState('')
  const title = name.replace(/^postMessage_/, '')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onAnswer(text)
  }
  return (
    <form className="tool-answer" aria-label={t('trial.callOf', { name: title })} onSubmit={submit}>
      <Group gap={6} wrap="nowrap">
        <Icon name="tool" size={14} />
        <Text size="xs" fw={500}>
          {t('trial.agentCalls', { name: title })}
        </Text>
      </Group>
      {argumentsText === '{}' ? null : <pre>{argumentsText}</pre>}
      <Group gap="xs" align="flex-end" wrap="nowrap">
        <Textarea
          label={t('trial.resultOf', { name: title })}
          size="xs"
          flex={1}
          autosize
          minRows={1}
          maxRows={5}
          autoFocus
          classNames={{ input: 'code-input' }}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        <Button type="submit" size="xs">
          {t('trial.sendResult')}
        </Button>
      </Group>
    </form>
  )
}

type Description = Outputs['agents']['describeDraft']

const PAUSE_MS = 300

/**
 * Returns the part of the definition that visitors may read. While the text has errors, returns that part of
 * the last valid text.
 */
function useDescription(text: string, format: DefinitionFormat): Description | undefined {
  const [yaml] = useDebouncedValue(text, PAUSE_MS)
  const { data } = useQuery({
    queryKey: ['description', format, yaml],
    queryFn: ({ signal }) => api.agents.describeDraft.mutate({ yaml, format }, { signal }),
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  })
  return data
}

/**
 * Connects to a chat's frame, and sends it each change to the definition, the tools and the color scheme.
 */
function useSession({ trial, lane, subject, tools }: Omit<LaneProps, 'isOnly'>) {
  const frame = useRef<HTMLIFrameElement>(null)
  const session = useRef<LaneSession>(undefined)
  const [connected, setConnected] = useState<Connected>()
  const hasStarted = useRef<Connected>(undefined)
  const scheme = useComputedColorScheme('light')
  const described = useDescription(lane.choice === 'saved' ? subject.savedText : subject.text, subject.format)
  const agent = useMemo(() => described && withoutStorage(described), [described])
  const latest = useRef<LaneRequest>({})
  latest.current = toRequest(subject, lane.choice)
  const { id } = lane
  useEffect(() => {
    const current = new LaneSession(frame.current as HTMLIFrameElement, {
      trial,
      laneId: id,
      toRequest: () => latest.current,
      onConnect: (session) => setConnected({ session }),
    })
    session.current = current
    const disconnect = trial.connect(id, (text, position) => current.post({ type: 'ask', text, position }))
    return () => {
      disconnect()
      current.end()
      trial.changeLane(id, () => ({ pending: [] }))
    }
  }, [trial, id])
  const theme = agent?.theme
  useEffect(() => {
    connected?.session.postPage({ type: 'configure', options: toFrameOptions(theme, scheme) })
  }, [connected, theme, scheme])
  useEffect(() => connected?.session.postPage({ type: 'visibility', isOpen: true }), [connected])
  useEffect(() => {
    if (connected === undefined || agent === undefined) return
    const isFirst = hasStarted.current !== connected
    hasStarted.current = connected
    if (isFirst) connected.session.post({ type: 'start', agent, entries: trial.lane(id)?.entries ?? [] })
    else connected.session.post({ type: 'agent', agent })
  }, [connected, agent, trial, id])
  useEffect(() => connected?.session.post({ type: 'tools', tools }), [connected, tools])
  return { frame, session, agent, isReady: connected !== undefined && agent !== undefined }
}

/** A new object for each load of the frame, so that the effects send everything again. */
interface Connected {
  readonly session: LaneSession
}

/** A trial is never stored, even if the agent stores conversations. */
function withoutStorage(agent: Description): Description {
  return { ...agent, conversations: { ...agent.conversations, stored: false } }
}

function toRequest({ agentId, text, format }: TrialSubject, choice: Choice): LaneRequest {
  return {
    ...(agentId === undefined ? {} : { model: `agent/${agentId}` }),
    trial: {
      is_traced: true,
      ...(choice === 'saved' ? {} : { draft: { yaml: text, format } }),
      ...(choice.startsWith('model:') ? { model: choice.slice('model:'.length) } : {}),
    },
  }
}
