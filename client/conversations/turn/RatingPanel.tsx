/** Shows the ratings of a turn, and lets the user rate it. */
import { ActionIcon, Button, Group, NativeSelect, Textarea } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../api.ts'
import { Ago } from '../../components/text.tsx'
import { problemOf } from '../../failure.ts'
import { Icon } from '../../shell/icons.tsx'
import { showProblem } from '../../shell/toast.tsx'
import { t } from '../../strings/language.ts'
import { isRunning, loadConversation, type Rating, type Turn, turnsQuery } from '../queries.ts'
import { nameReason, reasons } from './reasons.ts'

const sources = {
  visitor: t('conversations.visitor'),
  owner: t('conversations.team'),
  api: t('conversations.api'),
} as const

type Change = Pick<Rating, 'value' | 'reason' | 'comment'> | null

export function RatingPanel({ turn }: { readonly turn: Turn }) {
  const own = turn.ratings.find(({ source }) => source === 'owner')
  const rate = useRate(turn)
  if (isRunning(turn)) return null
  const press = (value: Rating['value']) =>
    rate.mutate(own?.value === value ? null : { value, reason: null, comment: null })
  return (
    <section aria-label={t('conversations.ratings')} className="side-section">
      <header className="why-head">
        <h2>{t('conversations.ratings')}</h2>
        <Group gap={4} role="group" aria-label={t('conversations.yourRating')}>
          {(['up', 'down'] as const).map((value) => (
            <ActionIcon
              key={value}
              variant={own?.value === value ? 'light' : 'default'}
              size={30}
              aria-pressed={own?.value === value}
              aria-label={value === 'up' ? t('conversations.rateUp') : t('conversations.rateDown')}
              title={value === 'up' ? t('conversations.rateUp') : t('conversations.rateDown')}
              loading={rate.isPending}
              onClick={() => press(value)}
            >
              <Icon name={value === 'up' ? 'thumbUp' : 'thumbDown'} size={16} />
            </ActionIcon>
          ))}
        </Group>
      </header>
      {own === undefined ? null : (
        <RatingForm key={own.updated_at} rating={own} onSave={(change) => rate.mutate(change)} />
      )}
      {turn.ratings.length === 0 ? <p className="side-empty">{t('conversations.notRated')}</p> : null}
      <ul className="ratings">
        {turn.ratings.map((rating) => (
          <RatingView key={rating.source} rating={rating} />
        ))}
      </ul>
    </section>
  )
}

function RatingView({
  rating: { source, value, reason, comment, updated_at: at },
}: {
  readonly rating: Rating
}) {
  return (
    <li className="rating">
      <span className="desk-thumb" data-value={value}>
        <Icon name={value === 'up' ? 'thumbUp' : 'thumbDown'} size={14} />
        <span className="for-screen-readers">
          {t(value === 'up' ? 'conversations.ratedUp' : 'conversations.ratedDown')}
        </span>
      </span>
      <span className="rating-text">
        {[sources[source], reason === null ? undefined : nameReason(reason)]
          .filter((part) => part !== undefined)
          .join(' · ')}
        {comment === null ? null : (
          <q dir="auto" className="rating-comment">
            {comment}
          </q>
        )}
      </span>
      <span className="why-time">
        <Ago seconds={at} />
      </span>
    </li>
  )
}

interface RatingFormProps {
  readonly rating: Rating
  readonly onSave: (change: Change) => void
}

/** Adds a reason and a comment to the user's rating. */
function RatingForm({ rating, onSave }: RatingFormProps) {
  const [reason, setReason] = useState(rating.reason ?? '')
  const [comment, setComment] = useState(rating.comment ?? '')
  const isChanged = reason !== (rating.reason ?? '') || comment.trim() !== (rating.comment ?? '')
  return (
    <form
      className="rating-form"
      onSubmit={(event) => {
        event.preventDefault()
        onSave({
          value: rating.value,
          reason: reasons.find((one) => one === reason) ?? null,
          comment: comment.trim() || null,
        })
      }}
    >
      <NativeSelect
        size="xs"
        aria-label={t('conversations.reason')}
        value={reason}
        data={[
          { value: '', label: t('conversations.noReason') },
          ...reasons.map((one) => ({ value: one, label: nameReason(one) })),
        ]}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
      <Textarea
        size="xs"
        autosize
        minRows={1}
        maxRows={6}
        maxLength={1_000}
        aria-label={t('conversations.comment')}
        placeholder={t('conversations.comment')}
        value={comment}
        onChange={(event) => setComment(event.currentTarget.value)}
      />
      {isChanged ? (
        <Button type="submit" size="xs" variant="default">
          {t('common.save')}
        </Button>
      ) : null}
    </form>
  )
}

function useRate({ id, conversation_id: conversationId }: Turn) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: async (change: Change): Promise<Rating | null> => {
      if (change !== null) return api.conversations.rate.mutate({ turn_id: id, ...change })
      await api.conversations.unrate.mutate({ turn_id: id })
      return null
    },
    onSuccess: (rating) => {
      queries.setQueryData(turnsQuery(conversationId).queryKey, (turns) =>
        turns?.map((turn) => {
          if (turn.id !== id) return turn
          const others = turn.ratings.filter(({ source }) => source !== 'owner')
          return { ...turn, ratings: rating === null ? others : [...others, rating] }
        }),
      )
      void loadConversation(queries, conversationId).catch(() => undefined)
    },
    onError: (thrown) => showProblem(problemOf(thrown)),
  })
}
