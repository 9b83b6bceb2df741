/** Shows how visitors and users rated the answers, by day, agent or version. */
import { Group, SegmentedControl, Stack } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Fragment, useState } from 'react'
import { api, type Outputs } from '../api.ts'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { Dialog } from '../components/Dialog.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { TextLink } from '../components/text.tsx'
import { renderDate, renderNumber, renderShare } from '../format.ts'
import { t } from '../strings/language.ts'
import { AgentName } from './AgentName.tsx'
import { nameReason, reasons as reasonCodes } from './turn/reasons.ts'

type Sums = Outputs['conversations']['ratings']['data'][number]

const groupings = ['day', 'agent', 'version'] as const
type Grouping = (typeof groupings)[number]

const groupNames = { day: 'usage.day', agent: 'common.agent', version: 'conversations.version' } as const
const periods = { '7': 'usage.days7', '30': 'usage.days30', '90': 'usage.days90' } as const
type Period = keyof typeof periods

interface RatingsDialogProps {
  /** Id of the agent whose ratings are counted; undefined for all agents. */
  readonly agent: string | undefined
  readonly isOpen: boolean
  readonly onClose: () => void
}

export function RatingsDialog({ agent, isOpen, onClose }: RatingsDialogProps) {
  return (
    <Dialog title={t('conversations.ratings')} isOpen={isOpen} onClose={onClose} size="xl">
      <RatingFigures agent={agent} onClose={onClose} />
    </Dialog>
  )
}

function RatingFigures({ agent, onClose }: Omit<RatingsDialogProps, 'isOpen'>) {
  const [by, setBy] = useState<Grouping>('day')
  const [period, setPeriod] = useState<Period>('30')
  const from = new Date(Date.now() - (Number(period) - 1) * 86_400_000).toISOString().slice(0, 10)
  const { data, error, refetch } = useQuery({
    queryKey: ['conversations', 'ratings', by, from, agent],
    queryFn: () => api.conversations.ratings.query({ group_by: by, from, agent }),
    placeholderData: keepPreviousData,
  })
  return (
    <Stack gap="md">
      <Group gap="sm">
        <SegmentedControl
          aria-label={t('usage.period')}
          value={period}
          data={Object.entries(periods).map(([value, label]) => ({ value, label: t(label) }))}
          onChange={(value) => setPeriod(value as Period)}
        />
        <SegmentedControl
          aria-label={t('usage.groupBy')}
          value={by}
          data={groupings.map((value) => ({ value, label: t(groupNames[value]) }))}
          onChange={(value) => setBy(value as Grouping)}
        />
      </Group>
      {data === undefined && error === null ? <Loading what="charts" rows={3} /> : null}
      {error === null ? null : <Failed error={error} what="charts" retry={() => void refetch()} />}
      {data?.data.length === 0 ? (
        <Empty icon="thumbUp" title={t('conversations.noRatings')}>
          {t('conversations.noRatingsHelp')}
        </Empty>
      ) : null}
      {data === undefined || data.data.length === 0 ? null : (
        <DataTable
          label={t('conversations.ratings')}
          columns={columnsOf(data.group_by, data.data, onClose)}
          rows={data.group_by === 'day' ? data.data.toReversed() : data.data}
          keyOf={({ day, agent_id: agentId, agent_version: version }) => `${day} ${agentId} ${version}`}
          onPhone="scroll"
        />
      )}
    </Stack>
  )
}

function columnsOf(by: Grouping, rows: readonly Sums[], onClose: () => void): readonly Column<Sums>[] {
  const agentIds = rows.flatMap(({ agent_id: id }) => id ?? [])
  return [
    {
      name: groupNames[by],
      render: ({ day, agent_id: id, agent_version: version }) =>
        day === undefined ? (
          <>
            <AgentName id={id} among={agentIds} />
            {version == null ? null : `, ${t('conversations.versionNumber', { number: version })}`}
          </>
        ) : (
          renderDate(Date.parse(`${day}T00:00:00`) / 1_000)
        ),
    },
    { name: 'conversations.goodCount', isNumber: true, render: ({ up }) => renderNumber(up) },
    {
      name: 'conversations.badCount',
      isNumber: true,
      render: (sums) => <BadCount sums={sums} onClose={onClose} />,
    },
    {
      name: 'conversations.goodShare',
      isNumber: true,
      render: ({ up, down }) => renderShare(up / Math.max(1, up + down)),
    },
    { name: 'conversations.reasons', render: (sums) => <Reasons sums={sums} onClose={onClose} /> },
  ]
}

interface BadCountProps {
  readonly sums: Sums
  readonly onClose: () => void
}

/**
 * Links to the conversations with these ratings. A day has no link, because the list can filter only by the
 * day on which a conversation was created.
 */
function BadCount({ sums: { day, agent_id: agent, agent_version: version, down }, onClose }: BadCountProps) {
  if (day !== undefined || agent == null || down === 0) return renderNumber(down)
  const search = { agent, rating: 'down' as const, ...(version == null ? {} : { version }) }
  return (
    <TextLink to="/conversations" search={search} size="sm" onClick={onClose}>
      {renderNumber(down)}
    </TextLink>
  )
}

/** Links each reason to the conversations, except in the sums of a day. */
function Reasons({
  sums: { day, agent_id: agent, agent_version: version, reasons },
  onClose,
}: BadCountProps) {
  const sorted = Object.entries(reasons).toSorted(([, one], [, other]) => other - one)
  if (sorted.length === 0) return '–'
  const isLinked = day === undefined && agent != null
  return sorted.map(([name, count], index) => {
    const text = `${nameReason(name)} (${renderNumber(count)})`
    const reason = reasonCodes.find((one) => one === name)
    return (
      <Fragment key={name}>
        {index === 0 ? null : ', '}
        {isLinked && reason !== undefined ? (
          <TextLink
            to="/conversations"
            search={{ agent, reason, ...(version == null ? {} : { version }) }}
            size="sm"
            onClick={onClose}
          >
            {text}
          </TextLink>
        ) : (
          text
        )}
      </Fragment>
    )
  })
}
