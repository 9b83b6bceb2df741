/** Announces new text to screen readers in whole sentences. */
import { useEffect, useRef, useState } from 'react'
import { type Conversation, type Entry, noteText, personSaid, type Reply, textOf } from '../conversation.ts'
import { useFrame } from '../frame-context.ts'
import { fill, type Language } from '../strings/strings.ts'
import { titleOf } from '../tools/check-tools.ts'
import { takeSentences } from './sentences.ts'

/**
 * Delay before each announcement in milliseconds, because screen readers skip text that is replaced too soon.
 */
const PACE_MS = 1500
/**
 * Maximum length of an announcement in characters, about two minutes of speech. Laying out megabytes of text
 * would block the page.
 */
const MAX_LENGTH = 2000

export function Announcer({ conversation, isOpen }: { conversation: Conversation; isOpen: boolean }) {
  const { language } = useFrame()
  const [shownText, setShownText] = useState('')
  const announced = useRef({ id: '', length: 0, note: '' })
  const waiting = useRef('')
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const known = useRef<ReadonlySet<string>>(new Set())
  const { entries } = conversation

  useEffect(() => {
    const last = entries.at(-1)
    const texts = listPersonal(entries, known.current, language)
    known.current = new Set(entries.map(({ id }) => id))
    if (last?.kind === 'reply')
      texts.push(takeNewText(last, announced.current, (reply) => noteOf(reply, language.strings)))
    const newText = texts.join(' ')
    if (newText === '' || !isOpen) return
    waiting.current = keepEnd(`${waiting.current} ${newText}`.trim())
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      setShownText(waiting.current)
      waiting.current = ''
    }, PACE_MS)
  }, [entries, language, isOpen])

  return (
    <div className="unseen" role="status" aria-live="polite">
      {shownText}
    </div>
  )
}

/** Returns new messages of people and changes of who answers; none if another conversation is shown. */
function listPersonal(entries: readonly Entry[], known: ReadonlySet<string>, language: Language): string[] {
  if (!entries.some(({ id }) => known.has(id))) return []
  return entries.flatMap((entry) => {
    if (known.has(entry.id)) return []
    if (entry.kind === 'note') return noteText(entry, language)
    return entry.kind === 'person' ? `${personSaid(entry, language)}: ${entry.text}` : []
  })
}

/** Shortens a text that is too long; keeps its end, which contains the note about how the reply ended. */
function keepEnd(text: string): string {
  if (text.length <= MAX_LENGTH) return text
  const end = text.slice(-MAX_LENGTH)
  return `… ${end.slice(end.search(/\s/) + 1)}`
}

interface Announced {
  id: string
  length: number
  note: string
}

/** Returns text that has not been announced. Replies that were complete when first seen are not announced. */
function takeNewText(reply: Reply, announced: Announced, noteFor: (reply: Reply) => string): string {
  const text = textOf(reply)
  if (announced.id !== reply.id) {
    Object.assign(announced, {
      id: reply.id,
      length: reply.status === 'streaming' ? 0 : text.length,
      note: '',
    })
    if (reply.status !== 'streaming') return ''
  }
  const { sentences, end } = takeSentences(text, announced.length, reply.status !== 'streaming')
  announced.length = end
  const note = noteFor(reply)
  const isNewNote = note !== announced.note
  announced.note = note
  return isNewNote ? `${sentences} ${note}`.trim() : sentences
}

function noteOf(reply: Reply, strings: ReturnType<typeof useFrame>['language']['strings']): string {
  if (reply.failure !== undefined) return strings.failures[reply.failure.code]
  if (reply.incomplete !== undefined) return strings.incomplete[reply.incomplete]
  if (reply.status === 'stopped') return reply.isTakenOver ? '' : strings.stopped
  if (reply.status === 'done') return strings.answerReady
  const asking = reply.rounds.at(-1)?.calls.find(({ status }) => status === 'asking')
  if (asking === undefined) return ''
  return fill(strings.tool.asking, { name: asking.title ?? titleOf(undefined, asking.name) })
}
