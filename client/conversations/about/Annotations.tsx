/** Shows and changes the tags and the notes of a conversation. */
import { ActionIcon, Button, CloseButton, Textarea, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../api.ts'
import { Failed, Loading } from '../../components/QueryStates.tsx'
import { Ago, TextLink } from '../../components/text.tsx'
import { problemOf } from '../../failure.ts'
import { Icon } from '../../shell/icons.tsx'
import { showProblem } from '../../shell/toast.tsx'
import { t } from '../../strings/language.ts'
import { type Conversation, type Note, notesQuery, showConversation } from '../queries.ts'

/** The server's limits. */
const MAX_TAGS = 20
const MAX_TAG = 40
const MAX_NOTE = 4_000

const onError = (thrown: unknown) => showProblem(problemOf(thrown))

export function Annotations({ conversation }: { readonly conversation: Conversation }) {
  return (
    <>
      <Tags conversation={conversation} />
      <Notes id={conversation.id} />
    </>
  )
}

function Tags({ conversation: { id, parley } }: { readonly conversation: Conversation }) {
  const queries = useQueryClient()
  const [text, setText] = useState('')
  const tags = parley?.tags ?? []
  const change = useMutation({
    mutationFn: (next: string[]) => api.conversations.setTags.mutate({ conversation_id: id, tags: next }),
    onSuccess: (changed) => showConversation(queries, changed),
    onError,
  })
  const add = () => {
    const tag = text.trim()
    setText('')
    if (tag !== '' && !tags.includes(tag)) change.mutate([...tags, tag])
  }
  return (
    <section className="side-section" aria-label={t('conversations.tags')}>
      <h2>{t('conversations.tags')}</h2>
      {tags.length === 0 ? null : (
        <ul className="tags">
          {tags.map((tag) => (
            <li key={tag} className="desk-chip">
              <TextLink to="/conversations" search={{ tag }} size="xs">
                <bdi>{tag}</bdi>
              </TextLink>
              <CloseButton
                size="xs"
                aria-label={t('conversations.removeTag', { tag })}
                disabled={change.isPending}
                onClick={() => change.mutate(tags.filter((one) => one !== tag))}
              />
            </li>
          ))}
        </ul>
      )}
      {tags.length >= MAX_TAGS ? null : (
        <TextInput
          size="xs"
          aria-label={t('conversations.addTag')}
          placeholder={t('conversations.addTag')}
          maxLength={MAX_TAG}
          value={text}
          leftSection={<Icon name="tag" size={14} />}
          onChange={(event) => setText(event.currentTarget.value)}
          onBlur={add}
          onKeyDown={(event) => event.key === 'Enter' && add()}
        />
      )}
    </section>
  )
}

function Notes({ id }: { readonly id: string }) {
  const { data: notes, error, refetch } = useQuery(notesQuery(id))
  return (
    <section className="side-section" aria-label={t('conversations.notes')}>
      <h2>{t('conversations.notes')}</h2>
      {notes === undefined && error === null ? <Loading what="notes" rows={1} height={40} /> : null}
      {error === null ? null : <Failed error={error} what="notes" retry={() => void refetch()} />}
      {notes === undefined || notes.length === 0 ? null : (
        <ul className="notes">
          {notes.map((note) => (
            <NoteView key={note.id} note={note} conversationId={id} />
          ))}
        </ul>
      )}
      <NewNote id={id} />
    </section>
  )
}

interface NoteViewProps {
  readonly note: Note
  readonly conversationId: string
}

function NoteView({ note, conversationId }: NoteViewProps) {
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () =>
      api.conversations.deleteNote.mutate({ conversation_id: conversationId, note_id: note.id }),
    onSuccess: () => queries.invalidateQueries({ queryKey: notesQuery(conversationId).queryKey }),
    onError,
  })
  return (
    <li className="note">
      <p dir="auto">{note.text}</p>
      <footer>
        <bdi>{note.author}</bdi> · <Ago seconds={note.created_at} />
        <ActionIcon
          variant="subtle"
          color="gray"
          size="sm"
          aria-label={t('conversations.deleteNote')}
          title={t('conversations.deleteNote')}
          loading={remove.isPending}
          onClick={() => remove.mutate()}
        >
          <Icon name="trash" size={14} />
        </ActionIcon>
      </footer>
    </li>
  )
}

function NewNote({ id }: { readonly id: string }) {
  const queries = useQueryClient()
  const [text, setText] = useState('')
  const add = useMutation({
    mutationFn: () => api.conversations.addNote.mutate({ conversation_id: id, text: text.trim() }),
    onSuccess: () => {
      setText('')
      return queries.invalidateQueries({ queryKey: notesQuery(id).queryKey })
    },
    onError,
  })
  return (
    <form
      className="rating-form"
      onSubmit={(event) => {
        event.preventDefault()
        add.mutate()
      }}
    >
      <Textarea
        size="xs"
        autosize
        minRows={1}
        maxRows={8}
        maxLength={MAX_NOTE}
        aria-label={t('conversations.newNote')}
        placeholder={t('conversations.newNote')}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      {text.trim() === '' ? null : (
        <Button type="submit" size="xs" variant="default" loading={add.isPending}>
          {t('conversations.addNote')}
        </Button>
      )}
    </form>
  )
}
