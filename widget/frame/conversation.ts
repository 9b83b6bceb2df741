/** Defines the conversation's entries, its reducer and its transcript. */
import type { Attachment } from './attachments/attachments.ts'
import type { Failure } from './failure.ts'
import { fill, type Language } from './strings/strings.ts'

/** A call to a page tool. */
export interface ToolCall {
  readonly id: string
  /** The name from the model, including the prefix. */
  readonly name: string
  /** Shown to the visitor instead of the name. */
  readonly title?: string
  /** One sentence about the tool's effect, from the page. */
  readonly purpose?: string
  /** Labels of the arguments, by name. */
  readonly labels?: Readonly<Record<string, string>>
  /** As the model wrote them; may not be valid JSON. */
  readonly argumentsText: string
  /**
   * `asking`: waiting for the visitor's approval. `unknown`: the tab that ran the call did not report a
   * result. `cancelled`: a person was requested or took over before the call started.
   */
  readonly status: 'asking' | 'running' | 'done' | 'failed' | 'denied' | 'unknown' | 'cancelled'
  /** The result for the model; absent until it is known. */
  readonly result?: string
}

/** One model call: its text, and the tool calls that it requests. */
export interface Round {
  readonly text: string
  readonly calls: readonly ToolCall[]
}

export interface UserMessage {
  readonly kind: 'user'
  readonly id: string
  readonly text: string
  readonly attachments?: readonly Attachment[]
  /** Unix milliseconds; absent in conversations that older versions stored. */
  readonly atMs?: number
  /** The progress of a message that no model answers; absent once the server has stored it. */
  readonly delivery?: 'sending' | 'delayed' | Failure
  /** Whether the visitor can edit or remove a message that the server stores. */
  readonly isChangeable?: boolean
  /** Whether the visitor can edit or remove a message that the server has not stored. */
  readonly isUnsent?: boolean
}

export interface Rating {
  readonly value: 'up' | 'down'
  readonly reason?: RatingReason | null | undefined
  readonly comment?: string | null | undefined
}

export const ratingReasons = ['incorrect', 'incomplete', 'off_topic', 'unsafe', 'too_slow', 'other'] as const

export type RatingReason = (typeof ratingReasons)[number]

export interface Reply {
  readonly kind: 'reply'
  readonly id: string
  readonly rounds: readonly Round[]
  /** Time at which the reply started, in Unix milliseconds. */
  readonly atMs?: number
  /** Other answers to the same message: those before and after this one. */
  readonly versions?: { readonly before: readonly Reply[]; readonly after: readonly Reply[] }
  /** `interrupted`: the page was closed or reloaded during the reply. */
  readonly status: 'streaming' | 'done' | 'stopped' | 'failed' | 'interrupted'
  readonly failure?: Failure
  /** Why the model did not finish the answer. */
  readonly incomplete?: 'interrupted' | 'max_output_tokens' | 'content_filter'
  /** Id of the turn on the server that the visitor can continue. */
  readonly continuable?: string
  /** Id of the turn on the server that the visitor can rate. */
  readonly ratable?: string
  readonly rating?: Rating
  /** Whether a person has taken the conversation over during the answer. */
  readonly isTakenOver?: boolean
}

/** A message of a person who answers instead of the model. */
export interface PersonMessage {
  readonly kind: 'person'
  readonly id: string
  readonly text: string
  /** Null if the agent hides the names of people. */
  readonly name: string | null
  readonly atMs: number
}

/** A change of who answers, or a message of the service. */
export interface ConversationNote {
  readonly kind: 'note'
  readonly id: string
  readonly atMs: number
  readonly note:
    | { readonly mode: AnsweringMode; readonly name: string | null }
    | { readonly mode?: undefined; readonly text: string }
}

/**
 * The party that answers. While it is `waiting`, the conversation waits for a person, and the model does not
 * answer.
 */
export type AnsweringMode = 'model' | 'waiting' | 'person'

export interface Answering {
  readonly mode: AnsweringMode
  /** The name of the person who answers; null if it is not shown. */
  readonly name: string | null
}

export const modelAnswers: Answering = { mode: 'model', name: null }

export type Entry = UserMessage | Reply | PersonMessage | ConversationNote

export interface Conversation {
  /** Ordered oldest first. */
  readonly entries: readonly Entry[]
}

export const emptyConversation: Conversation = { entries: [] }

/** Returns all of a reply's text, in order. */
export function textOf(reply: Reply): string {
  return reply.rounds
    .map(({ text }) => text)
    .filter((text) => text !== '')
    .join('\n\n')
}

export function findStreaming({ entries }: Conversation): Reply | undefined {
  const last = entries.at(-1)
  return last?.kind === 'reply' && last.status === 'streaming' ? last : undefined
}

export type ConversationAction =
  | { readonly type: 'replaced'; readonly entries: readonly Entry[] }
  | {
      readonly type: 'asked'
      readonly id: string
      readonly text: string
      readonly attachments: readonly Attachment[]
      readonly replyId: string
      readonly atMs: number
    }
  /** Adds another version of the newest reply, or replaces it if it has failed. */
  | { readonly type: 'asked-again'; readonly replyId: string; readonly atMs: number }
  /** Shows another version of a reply: the one before (-1) or after (1). */
  | { readonly type: 'version'; readonly replyId: string; readonly step: -1 | 1 }
  /** Removes a message and its reply. */
  | { readonly type: 'removed'; readonly id: string }
  /** Removes a message and everything after it. */
  | { readonly type: 'cut'; readonly id: string }
  | { readonly type: 'text'; readonly replyId: string; readonly text: string }
  | { readonly type: 'calls'; readonly replyId: string; readonly calls: readonly ToolCall[] }
  | {
      readonly type: 'call-changed'
      readonly replyId: string
      readonly callId: string
      readonly change: Partial<Omit<ToolCall, 'id'>>
    }
  | { readonly type: 'next-round'; readonly replyId: string }
  | { readonly type: 'ended'; readonly replyId: string; readonly status: 'done' | 'stopped' }
  | { readonly type: 'failed'; readonly replyId: string; readonly failure: Failure }

/** Ignores actions for a reply that has ended. */
export function reduceConversation(state: Conversation, action: ConversationAction): Conversation {
  switch (action.type) {
    case 'replaced':
      return { entries: action.entries }
    case 'asked': {
      const { id, text, attachments, atMs } = action
      const asked: Entry = { kind: 'user', id, text, atMs, ...(attachments.length > 0 && { attachments }) }
      return { entries: [...state.entries, asked, newReply(action.replyId, atMs)] }
    }
    case 'asked-again': {
      const last = state.entries.at(-1)
      const next = newReply(action.replyId, action.atMs)
      if (last?.kind !== 'reply') return { entries: [...state.entries, next] }
      return { entries: [...state.entries.slice(0, -1), { ...next, ...versionsAfter(last) }] }
    }
    case 'version':
      return { entries: state.entries.map((entry) => turnPage(entry, action)) }
    case 'removed': {
      const at = state.entries.findIndex(({ id }) => id === action.id)
      const count = state.entries[at + 1]?.kind === 'reply' ? 2 : 1
      return at === -1 ? state : { entries: state.entries.toSpliced(at, count) }
    }
    case 'cut': {
      const at = state.entries.findIndex(({ id }) => id === action.id)
      return at === -1 ? state : { entries: state.entries.slice(0, at) }
    }
    default:
      return changeReply(state, action.replyId, (reply) => reduceReply(reply, action))
  }
}

type ReplyAction = Exclude<
  ConversationAction,
  { type: 'replaced' | 'asked' | 'asked-again' | 'version' | 'removed' | 'cut' }
>

function reduceReply(reply: Reply, action: ReplyAction): Reply {
  switch (action.type) {
    case 'text':
      return changeLastRound(reply, (round) => ({ ...round, text: round.text + action.text }))
    case 'calls':
      return changeLastRound(reply, (round) => ({ ...round, calls: action.calls }))
    case 'call-changed':
      return changeLastRound(reply, (round) => ({
        ...round,
        calls: round.calls.map((call) => (call.id === action.callId ? { ...call, ...action.change } : call)),
      }))
    case 'next-round':
      return { ...reply, rounds: [...reply.rounds, emptyRound] }
    case 'ended':
      return { ...withoutOpenCalls(reply), status: action.status }
    case 'failed':
      return { ...withoutOpenCalls(reply), status: 'failed', failure: action.failure }
  }
}

const emptyRound: Round = { text: '', calls: [] }

function newReply(id: string, atMs: number): Reply {
  return { kind: 'reply', id, rounds: [emptyRound], status: 'streaming', atMs }
}

/** Maximum number of versions of a reply, because the browser stores all of them; the oldest are dropped. */
const MAX_VERSIONS = 10

/** Returns the versions of a reply that replaces `last`. A reply that failed without a text is dropped. */
function versionsAfter(last: Reply): Pick<Reply, 'versions'> {
  const { versions: { before, after } = { before: [], after: [] }, ...shown } = last
  const isKept = last.status !== 'failed' || textOf(last) !== ''
  const others = [...before, ...(isKept ? [shown] : []), ...after].slice(1 - MAX_VERSIONS)
  return others.length === 0 ? {} : { versions: { before: others, after: [] } }
}

function turnPage(entry: Entry, { replyId, step }: { replyId: string; step: -1 | 1 }): Entry {
  if (entry.kind !== 'reply' || entry.id !== replyId || entry.versions === undefined) return entry
  const { versions, ...shown } = entry
  const all = [...versions.before, shown, ...versions.after]
  const at = versions.before.length + step
  const next = all[at]
  if (next === undefined) return entry
  return { ...next, versions: { before: all.slice(0, at), after: all.slice(at + 1) } }
}

function changeReply(state: Conversation, id: string, change: (reply: Reply) => Reply): Conversation {
  const last = state.entries.at(-1)
  if (last?.kind !== 'reply' || last.id !== id || last.status !== 'streaming') return state
  return { entries: [...state.entries.slice(0, -1), change(last)] }
}

function changeLastRound(reply: Reply, change: (round: Round) => Round): Reply {
  return { ...reply, rounds: [...reply.rounds.slice(0, -1), change(reply.rounds.at(-1) ?? emptyRound)] }
}

/** Marks a stopped reply's open tool calls as failed. */
function withoutOpenCalls(reply: Reply): Reply {
  const isOpen = ({ status }: ToolCall) => status === 'asking' || status === 'running'
  if (!reply.rounds.some(({ calls }) => calls.some(isOpen))) return reply
  const rounds = reply.rounds.map((round) => ({
    ...round,
    calls: round.calls.map((call) => (isOpen(call) ? { ...call, status: 'failed' as const } : call)),
  }))
  return { ...reply, rounds }
}

/** Renders the messages with their authors in the visitor's language, without tool calls. */
export function renderTranscript(entries: readonly Entry[], language: Language): string {
  return entries.map((entry) => renderPart(entry, language)).join('\n\n')
}

function renderPart(entry: Entry, language: Language): string {
  const { strings } = language
  switch (entry.kind) {
    case 'user':
      return `${strings.youSaid}:\n${entry.text}`
    case 'reply':
      return `${strings.assistantSaid}:\n${textOf(entry)}`
    case 'person':
      return `${personSaid(entry, language)}:\n${entry.text}`
    case 'note':
      return noteText(entry, language)
  }
}

export function personSaid({ name }: PersonMessage, { strings: { people } }: Language): string {
  return name === null ? people.saidUnnamed : fill(people.said, { name })
}

export function noteText({ note }: ConversationNote, { strings: { people } }: Language): string {
  switch (note.mode) {
    case undefined:
      return note.text
    case 'model':
      return people.returned
    case 'waiting':
      return people.asked
    case 'person':
      return note.name === null ? people.joinedUnnamed : fill(people.joined, { name: note.name })
  }
}
