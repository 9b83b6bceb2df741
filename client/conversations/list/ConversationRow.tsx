/** Shows one conversation in the list. */
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Highlighted } from '../../components/Highlighted.tsx'
import { Status } from '../../components/Status.tsx'
import { renderClock, renderMoment, renderShortAgo } from '../../format.ts'
import type { ConversationsSearch } from '../../search.ts'
import { Icon } from '../../shell/icons.tsx'
import { t } from '../../strings/language.ts'
import { AgentName } from '../AgentName.tsx'
import { type Conversation, titleOf, visitorOf } from '../queries.ts'
import { filtersOf } from './filters.ts'

interface ConversationRowProps {
  readonly conversation: Conversation
  readonly search: ConversationsSearch
  /** The ids of all agents in the list, so that one request loads their names. */
  readonly agentIds: readonly string[]
  readonly isOpen: boolean
  /** The checkbox. */
  readonly children: ReactNode
}

export function ConversationRow({ conversation, search, agentIds, isOpen, children }: ConversationRowProps) {
  const { id, parley, match } = conversation
  const visitor = visitorOf(conversation)
  return (
    <li className="desk-row" data-mode={parley?.mode} data-open={isOpen || undefined}>
      {children}
      <Link
        to="/conversations/$conversationId"
        params={{ conversationId: id }}
        search={{ ...filtersOf(search), ...(match !== undefined && { item: match.item_id }) }}
        className="desk-row-link"
        aria-current={isOpen ? 'true' : undefined}
        data-row
      >
        <span className="desk-row-head">
          <bdi className="desk-row-title" data-untitled={parley?.title == null || undefined}>
            {titleOf(conversation)}
          </bdi>
          <RowTime seconds={parley?.last_at ?? conversation.created_at} />
        </span>
        <span className="desk-row-about">
          <AgentName id={parley?.agent_id} among={agentIds} />
          {visitor === undefined ? null : (
            <>
              {' · '}
              <bdi>{visitor}</bdi>
            </>
          )}
        </span>
        {match === undefined || search.q === undefined ? null : (
          <bdi className="desk-row-snippet">
            <Highlighted text={match.snippet} query={search.q} />
          </bdi>
        )}
        <Marks conversation={conversation} />
      </Link>
    </li>
  )
}

function RowTime({ seconds }: { readonly seconds: number }) {
  return (
    <time
      className="desk-row-time"
      dateTime={new Date(seconds * 1_000).toISOString()}
      title={renderMoment(seconds)}
    >
      {renderShortAgo(seconds)}
    </time>
  )
}

/** Shows who answers if it is not the model, problems of the last turn, ratings and tags. */
function Marks({ conversation: { parley } }: Pick<ConversationRowProps, 'conversation'>) {
  if (parley === undefined) return null
  const { mode, mode_since: since, assignee, answer_due: due } = parley
  const { last_status: status, up, down, tags } = parley
  const marks: ReactNode[] = []
  if (mode === 'waiting')
    marks.push(
      <Status key="mode" tone="warn">
        {t('conversations.waitingSince', { time: renderShortAgo(since) })}
      </Status>,
    )
  if (mode === 'person')
    marks.push(
      <Status key="mode" tone="active">
        {t('conversations.answeredByName', { name: assignee ?? t('conversations.person') })}
      </Status>,
    )
  if (mode === 'person' && due !== null)
    marks.push(
      <Status key="due" tone="warn">
        {t('conversations.answerDue', { time: renderClock(due) })}
      </Status>,
    )
  if (status === 'failed')
    marks.push(
      <Status key="status" tone="bad">
        {t('conversations.failed')}
      </Status>,
    )
  if (status === 'incomplete')
    marks.push(
      <Status key="status" tone="quiet">
        {t('conversations.incomplete')}
      </Status>,
    )
  if (status === 'in_progress' || status === 'queued')
    marks.push(
      <Status key="status" tone="active">
        {t('conversations.answering')}
      </Status>,
    )
  if (up > 0) marks.push(<Thumb key="up" value="up" count={up} />)
  if (down > 0) marks.push(<Thumb key="down" value="down" count={down} />)
  for (const tag of tags)
    marks.push(
      <bdi key={`tag ${tag}`} className="desk-tag">
        {tag}
      </bdi>,
    )
  return marks.length === 0 ? null : <span className="desk-row-marks">{marks}</span>
}

function Thumb({ value, count }: { readonly value: 'up' | 'down'; readonly count: number }) {
  const label =
    value === 'up' ? t('conversations.goodRatings', { count }) : t('conversations.badRatings', { count })
  return (
    <span className="desk-thumb" data-value={value} title={label}>
      <Icon name={value === 'up' ? 'thumbUp' : 'thumbDown'} size={13} />
      <span className="for-screen-readers">{label}</span>
      {count > 1 ? <span aria-hidden="true">{count}</span> : null}
    </span>
  )
}
