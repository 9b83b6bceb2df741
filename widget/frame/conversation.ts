/** Defines the conversation's entries, its reducer and its transcript. */
import type { Failure } from './failure.ts'
import type { Language } from './strings/strings.ts'

/** A call to a page tool. */
export interface ToolCall {
  readonly id: string
  /** The name from the model, including the prefix. */
  readonly name: string
  /** Shown to the visitor instead of the name. */
  readonly title?: string
  /** As the model wrote them; may not be valid JSON. */
  readonly argumentsText: string
  /** `asking`: waiting for the visitor's approval. `unknown`: the tab that ran the call did not report a result. */
  readonly status: 'asking' | 'running' | 'done' | 'failed' | 'denied' | 'unknown'
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
}

export interface Reply {
  readonly kind: 'reply'
  readonly id: string
  readonly rounds: readonly Round[]
  /** `interrupted`: the page was closed or reloaded during the reply. */
  readonly status: 'streaming' | 'done' | 'stopped' | 'failed' | 'interrupted'
  readonly failure?: Failure
  /** Why the model did not finish the answer. */
  readonly incomplete?: 'interrupted' | 'max_output_tokens' | 'content_filter'
  /** The turn on the server that the visitor can continue. */
  readonly continuable?: string
}

export type Entry = UserMessage | Reply

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

/** Returns the streaming reply, if there is one. */
export function findStreaming({ entries }: Conversation): Reply | undefined {
  const last = entries.at(-1)
  return last?.kind === 'reply' && last.status === 'streaming' ? last : undefined
}

export type ConversationAction =
  | { readonly type: 'replaced'; readonly entries: readonly Entry[] }
  | { readonly type: 'asked'; readonly id: string; readonly text: string; readonly replyId: string }
  /** Replaces the newest reply, even if it is complete. */
  | { readonly type: 'asked-again'; readonly replyId: string }
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
      const asked: Entry = { kind: 'user', id: action.id, text: action.text }
      return { entries: [...state.entries, asked, newReply(action.replyId)] }
    }
    case 'asked-again': {
      const before = state.entries.at(-1)?.kind === 'reply' ? state.entries.slice(0, -1) : state.entries
      return { entries: [...before, newReply(action.replyId)] }
    }
    default:
      return changeReply(state, action.replyId, (reply) => reduceReply(reply, action))
  }
}

type ReplyAction = Exclude<ConversationAction, { type: 'replaced' | 'asked' | 'asked-again' }>

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

function newReply(id: string): Reply {
  return { kind: 'reply', id, rounds: [emptyRound], status: 'streaming' }
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
export function renderTranscript(entries: readonly Entry[], { strings }: Language): string {
  return entries
    .map((entry) =>
      entry.kind === 'user'
        ? `${strings.youSaid}:\n${entry.text}`
        : `${strings.assistantSaid}:\n${textOf(entry)}`,
    )
    .join('\n\n')
}
