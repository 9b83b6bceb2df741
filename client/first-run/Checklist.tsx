/** Shows the first steps with Parley: connect a model, create an agent, try it and embed it. */
import './first-run.css'
import { Button, CloseButton, Group, Progress, Stack, Text, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { TextLink } from '../components/text.tsx'
import { Icon } from '../shell/icons.tsx'
import { useMe } from '../shell/use-me.ts'
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
    <section className="panel checklist" aria-label="Get started">
      <Group justify="space-between" wrap="nowrap" align="flex-start" className="checklist-head">
        <Stack gap={2}>
          <Title order={2}>{next === undefined ? 'You are all set' : 'Get started'}</Title>
          <Text size="xs" c="dimmed">
            {count} of {STEPS} steps complete
          </Text>
        </Stack>
        {onHide === undefined ? null : <CloseButton aria-label="Hide checklist" onClick={onHide} />}
      </Group>
      <Progress value={(100 * count) / STEPS} size={4} aria-label="Complete steps" />
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
          {isDone ? <span className="for-screen-readers"> (complete)</span> : null}
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
      title: 'Connect a model',
      isDone: isModelConnected,
      about: <ConnectModel isAdministrator={isAdministrator} />,
      action: isAdministrator ? (
        <Button component={Link} to="/providers">
          Connect model
        </Button>
      ) : null,
    },
    {
      title: 'Create an agent',
      isDone: hasAgent,
      about: 'Start from a template: a name, instructions and, if you like, tools.',
      action: (
        <Button component={Link} to="/agents/new">
          Create agent
        </Button>
      ),
      link: (
        <TextLink to="/agents/new" size="sm" aria-label="Create an agent">
          Create
        </TextLink>
      ),
    },
    {
      title: 'Try it',
      isDone: isTried,
      about: 'Send a message to your agent, and see its answer, tool calls and tokens.',
      action: (
        <Button
          renderRoot={(props) => (
            <Link to="/agents/$agentId" params={params} search={{ try: true }} {...props} />
          )}
        >
          Try agent
        </Button>
      ),
      link: hasLink ? (
        <TextLink
          to="/agents/$agentId"
          params={params}
          search={{ try: true }}
          size="sm"
          aria-label="Try the agent"
        >
          Try
        </TextLink>
      ) : null,
    },
    {
      title: 'Embed it',
      isDone: isEmbedded,
      about: 'Copy the embed code of your agent to a page of your website.',
      action: (
        <Button renderRoot={(props) => <Link to="/agents/$agentId/embed" params={params} {...props} />}>
          Show embed code
        </Button>
      ),
      link: hasLink ? (
        <TextLink to="/agents/$agentId/embed" params={params} size="sm" aria-label="Embed the agent">
          Embed
        </TextLink>
      ) : null,
    },
  ]
}

function ConnectModel({ isAdministrator }: { readonly isAdministrator: boolean }) {
  if (!isAdministrator)
    return 'Only the built-in mock model answers, and it only repeats messages. Ask your administrator to connect a model.'
  return 'Only the built-in mock model answers, and it only repeats messages. Add OpenAI, Anthropic, Ollama or any server with the OpenAI API.'
}
