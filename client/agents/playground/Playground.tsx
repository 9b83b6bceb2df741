/** Tries a definition in the widget, alone or next to other models, with a trace of each answer. */

import { ActionIcon, Button, Group, SegmentedControl, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { MockNotice } from '../../first-run/MockNotice.tsx'
import { Icon } from '../../shell/icons.tsx'
import { t } from '../../strings/language.ts'
import { modelsQuery } from '../queries.ts'
import './playground.css'
import { LaneView, type TrialSubject } from './LaneView.tsx'
import { PageToolsButton, toMockTools } from './PageTools.tsx'
import { type StoredTests, useStoredTests } from './stored-tests.ts'
import { TestQuestions } from './TestQuestions.tsx'
import { Facts, TraceView } from './TraceView.tsx'
import { MAX_LANES, type Trial, type TrialState, trialOf, useTrial } from './trial.ts'

interface PlaygroundPanelProps {
  /** Identifies the trial and its stored tests: the agent's id, or an id for the new definition. */
  readonly trialId: string
  readonly subject: TrialSubject
  /** The reason why the draft cannot be tried now. */
  readonly obstacle: string | undefined
  /** Switches whether the panel is as wide as the page; undefined if it always is. */
  readonly widen?: { readonly isWide: boolean; readonly toggle: () => void } | undefined
}

export function PlaygroundPanel({ trialId, subject, obstacle, widen }: PlaygroundPanelProps) {
  const trial = trialOf(trialId)
  const state = useTrial(trial)
  const [tests, changeTests] = useStoredTests(trialId)
  const parts = { trial, state, tests, changeTests }
  // Waits for the models, because the notice depends on them and would otherwise appear later and move the
  // chats.
  const { isPending } = useQuery(modelsQuery)
  return (
    <section className="playground-panel" aria-label={t('editor.try')}>
      <PanelHead {...parts} widen={widen} />
      <div className="playground-notice">
        <MockNotice />
        {obstacle === undefined ? null : (
          <Text size="xs" c="var(--mantine-color-error)" role="status" mt={4}>
            {obstacle}
          </Text>
        )}
      </div>
      {isPending ? null : <PanelBody {...parts} subject={subject} />}
    </section>
  )
}

function PanelBody({ subject, ...parts }: PartProps & Pick<PlaygroundPanelProps, 'subject'>) {
  const { trial, state, tests } = parts
  const tools = useMemo(() => toMockTools(tests.tools), [tests.tools])
  const [isTraceOpen, setIsTraceOpen] = useState(false)
  return (
    <div className="playground-body" data-trace={isTraceOpen}>
      <div className="lanes" data-count={state.lanes.length}>
        {state.lanes.map((lane) => (
          <LaneView
            key={lane.id}
            trial={trial}
            lane={lane}
            subject={subject}
            tools={tools}
            isOnly={state.lanes.length === 1}
          />
        ))}
      </div>
      <Trace {...parts} toggle={{ isOpen: isTraceOpen, set: setIsTraceOpen }} />
    </div>
  )
}

interface PartProps {
  readonly trial: Trial
  readonly state: TrialState
  readonly tests: StoredTests
  readonly changeTests: (changes: Partial<StoredTests>) => void
}

function PanelHead({
  trial,
  state: { lanes },
  tests,
  changeTests,
  widen,
}: PartProps & Pick<PlaygroundPanelProps, 'widen'>) {
  return (
    <Group justify="space-between" gap={4} className="playground-head">
      <Title order={2}>{t('editor.try')}</Title>
      <Group gap={4}>
        <TestQuestions
          questions={tests.questions}
          onChange={(questions) => changeTests({ questions })}
          onAsk={(question) => trial.ask(question)}
        />
        <PageToolsButton tools={tests.tools} onChange={(tools) => changeTests({ tools })} />
        <Button
          variant="subtle"
          color="gray"
          size="compact-sm"
          leftSection={<Icon name="plus" size={14} />}
          disabled={lanes.length === MAX_LANES}
          onClick={() => trial.addLane('draft')}
        >
          {t('trial.compare')}
        </Button>
        {widen === undefined ? null : (
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={t(widen.isWide ? 'trial.showNext' : 'trial.showWhole')}
            title={t(widen.isWide ? 'trial.showNext' : 'trial.showWhole')}
            onClick={widen.toggle}
          >
            <Icon name={widen.isWide ? 'shrink' : 'expand'} size={16} />
          </ActionIcon>
        )}
      </Group>
    </Group>
  )
}

interface TraceProps extends PartProps {
  readonly toggle: { readonly isOpen: boolean; readonly set: (isOpen: boolean) => void }
}

function Trace({ trial, state, tests, changeTests, toggle }: TraceProps) {
  const { lanes, tracedLane } = state
  const turns = lanes.find(({ id }) => id === tracedLane)?.turns ?? []
  const last = turns.at(-1)
  return (
    <aside className="trace" aria-label={t('trial.trace')}>
      <Group justify="space-between" wrap="nowrap" className="trace-head">
        <Title order={3} size="h5">
          {t('trial.trace')}
        </Title>
        {lanes.length === 1 ? null : (
          <SegmentedControl
            aria-label={t('trial.chatOfTrace')}
            size="xs"
            data={lanes.map(({ id }, index) => ({
              value: id,
              label: t('trial.chatNumber', { number: index + 1 }),
            }))}
            value={tracedLane}
            onChange={(id) => trial.showTrace(id)}
          />
        )}
        <div className="trace-summary">{last === undefined ? null : <Facts turn={last} />}</div>
        <Button
          className="trace-toggle"
          variant="subtle"
          color="gray"
          size="compact-xs"
          aria-label={t(toggle.isOpen ? 'trial.hideTrace' : 'trial.showTrace')}
          aria-expanded={toggle.isOpen}
          onClick={() => toggle.set(!toggle.isOpen)}
        >
          {t(toggle.isOpen ? 'keys.hide' : 'usage.show')}
        </Button>
      </Group>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <section className="trace-body" tabIndex={0} aria-label={t('trial.steps')}>
        <TraceView
          turns={turns}
          onResend={(text, position) => trial.ask(text, position)}
          isSaved={(question) => tests.questions.includes(question)}
          onSave={(question) => changeTests({ questions: [...tests.questions, question] })}
        />
      </section>
    </aside>
  )
}
