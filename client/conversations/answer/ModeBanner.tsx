/** Shows who answers a conversation and since when, and lets the user take it over or hand it back. */
import { Button, Group } from '@mantine/core'
import { ClockTime } from '../../components/text.tsx'
import { Icon, type IconName } from '../../shell/icons.tsx'
import { t } from '../../strings/language.ts'
import { rich } from '../../strings/rich.tsx'
import type { Conversation } from '../queries.ts'
import type { Handover } from './use-handover.ts'

interface ModeBannerProps {
  readonly conversation: Conversation
  readonly handover: Handover
  /** Whether the page receives new messages. */
  readonly isConnected: boolean
}

const icons: Readonly<Record<Handover['mode'], IconName>> = {
  model: 'agents',
  waiting: 'clock',
  person: 'person',
}

export function ModeBanner({ conversation: { parley }, handover, isConnected }: ModeBannerProps) {
  const { mode, isMine, takeOver, handBack } = handover
  const time = <ClockTime key="time" seconds={parley?.mode_since ?? 0} />
  return (
    <Group className="desk-mode" data-mode={mode} gap="xs" wrap="nowrap">
      <Icon name={icons[mode]} size={16} />
      <p role="status">
        {describe(handover, time)}
        {parley?.answer_due == null ? null : <> {describeDue(handover, parley.answer_due)}</>}
        {isConnected ? null : <span className="desk-reconnecting"> {t('conversations.reconnecting')}</span>}
      </p>
      {mode === 'person' ? (
        <Button
          size="xs"
          variant="default"
          loading={handBack.isPending}
          onClick={() => handBack.mutate()}
          title={isMine ? t('conversations.handBackKey') : undefined}
        >
          {t('conversations.handBack')}
        </Button>
      ) : (
        <Button
          size="xs"
          variant={mode === 'waiting' ? 'filled' : 'default'}
          loading={takeOver.isPending}
          onClick={() => takeOver.mutate()}
        >
          {t('conversations.takeOver')}
        </Button>
      )}
    </Group>
  )
}

/** Says what happens at the time by which no person has answered. */
function describeDue({ mode }: Handover, due: number): React.ReactNode {
  const time = <ClockTime key="due" seconds={due} />
  return mode === 'person'
    ? rich('conversations.answerIsDue', { time })
    : rich('conversations.waitEnds', { time })
}

function describe({ mode, isMine, assignee }: Handover, time: React.ReactNode): React.ReactNode {
  if (mode === 'model') return t('conversations.modelAnswers')
  if (mode === 'waiting') return rich('conversations.visitorWaits', { time })
  if (isMine) return rich('conversations.youAnswer', { time })
  const name = <bdi key="name">{assignee ?? t('conversations.person')}</bdi>
  return rich('conversations.otherAnswers', { name, time })
}
