/** Shows the first steps with Parley: connect a model, create an agent, try it and embed it. */
import './first-run.css'
import { Button, CloseButton, Group, Progress, Stack, Text, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { TextLink } from '../components/text.tsx'
import { Icon } from '../shell/icons.tsx'
import { useMe } from '../shell/use-me.ts'
import { t } from '../strings/language.ts'
import { countSteps, type FirstRun, STEPS } from './first-run.ts'

interface ChecklistProps {
  readonly progress: FirstRun
  /** Without it, the checklist cannot be hidden. */
  readonly onHide?: () => void
}

export function Checklist({ progress, onHide }: ChecklistProps) {
  const steps = useSteps(progress)
  const next = steps.find(({ isDone }) => !isDone)
  const count = countSteps(progress)
  return (
    <section className="panel checklist" aria-label={t('firstRun.title')}>
      <Group justify="space-between" wrap="nowrap" align="flex-start" className="checklist-head">
        <Stack gap={2}>
          <Title order={2}>{next === undefined ? t('firstRun.allSet') : t('firstRun.title')}</Title>
          <Text size="xs" c="dimmed">
            {t('firstRun.progress', { done: count, steps: STEPS })}
          </Text>
        </Stack>
        {onHide === undefined ? null : <CloseButton aria-label={t('firstRun.hide')} onClick={onHide} />}
      </Group>
      <Progress value={(100 * count) / STEPS} size={4} aria-label={t('firstRun.completeSteps')} />
      <ol className="checklist-steps">
        {steps.map((step) => (
          <StepItem key={step.title} step={step} isNext={step === next} />
        ))}
      </ol>
    </section>
  )
}

interface Step {
  readonly title: string
  readonly isDone: boolean
  readonly about: ReactNode
  /** The button of the next step. */
  readonly action: ReactNode
  /** The link of a later step; undefined until an earlier step is complete. */
  readonly link?: ReactNode
}

function StepItem({ step, isNext }: { readonly step: Step; readonly isNext: boolean }) {
  const { title, isDone, about, action, link } = step
  return (
    <li className="checklist-step" data-done={isDone || undefined} aria-current={isNext ? 'step' : undefined}>
      <span className="checklist-mark" aria-hidden="true">
        {isDone ? <Icon name="check" size={14} /> : null}
      </span>
      <div className="checklist-text">
        <Text size="sm" fw={500} component="h3">
          {title}
          {isDone ? <span className="for-screen-readers"> {t('firstRun.complete')}</span> : null}
        </Text>
        {isNext ? (
          <Text size="sm" c="dimmed" maw={640}>
            {about}
          </Text>
        ) : null}
      </div>
      {isNext ? action : null}
      {isNext || isDone ? null : link}
    </li>
  )
}

function useSteps({ isModelConnected, hasAgent, isTried, isEmbedded, agentId }: FirstRun): readonly Step[] {
  const { is_administrator: isAdministrator } = useMe()
  const params = { agentId: agentId ?? '' }
  const hasLink = agentId !== undefined
  return [
    {
      title: t('firstRun.connect'),
      isDone: isModelConnected,
      about: <ConnectModel isAdministrator={isAdministrator} />,
      action: isAdministrator ? (
        <Button component={Link} to="/providers">
          {t('firstRun.connectModel')}
        </Button>
      ) : null,
    },
    {
      title: t('firstRun.create'),
      isDone: hasAgent,
      about: t('firstRun.createAbout'),
      action: (
        <Button component={Link} to="/agents/new">
          {t('firstRun.createAgent')}
        </Button>
      ),
      link: (
        <TextLink to="/agents/new" size="sm" aria-label={t('firstRun.create')}>
          {t('common.create')}
        </TextLink>
      ),
    },
    {
      title: t('firstRun.try'),
      isDone: isTried,
      about: t('firstRun.tryAbout'),
      action: (
        <Button
          renderRoot={(props) => (
            <Link to="/agents/$agentId" params={params} search={{ try: true }} {...props} />
          )}
        >
          {t('firstRun.tryAgent')}
        </Button>
      ),
      link: hasLink ? (
        <TextLink
          to="/agents/$agentId"
          params={params}
          search={{ try: true }}
          size="sm"
          aria-label={t('firstRun.tryTheAgent')}
        >
          {t('firstRun.tryShort')}
        </TextLink>
      ) : null,
    },
    {
      title: t('firstRun.embed'),
      isDone: isEmbedded,
      about: t('firstRun.embedAbout'),
      action: (
        <Button renderRoot={(props) => <Link to="/agents/$agentId/embed" params={params} {...props} />}>
          {t('firstRun.showEmbedCode')}
        </Button>
      ),
      link: hasLink ? (
        <TextLink
          to="/agents/$agentId/embed"
          params={params}
          size="sm"
          aria-label={t('firstRun.embedTheAgent')}
        >
          {t('firstRun.embedShort')}
        </TextLink>
      ) : null,
    },
  ]
}

function ConnectModel({ isAdministrator }: { readonly isAdministrator: boolean }) {
  return isAdministrator ? t('firstRun.connectHelp') : t('firstRun.askAdministrator')
}
