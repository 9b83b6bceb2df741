/** How a conversation changes: a pure function of what happens. */
import type { Failure } from '../failure.ts'
import type { Conversation, Entry, Reply, Round, ToolCall } from './state.ts'

export type ConversationAction =
  | { readonly type: 'replaced'; readonly entries: readonly Entry[] }
  | { readonly type: 'asked'; readonly id: string; readonly text: string; readonly replyId: string }
  /** The newest reply, whatever became of it, is written again. */
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

/** What comes for a reply that is no longer being written changes nothing. */
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

/** Whoever stops a reply stops its tools. */
function withoutOpenCalls(reply: Reply): Reply {
  const isOpen = ({ status }: ToolCall) => status === 'asking' || status === 'running'
  if (!reply.rounds.some(({ calls }) => calls.some(isOpen))) return reply
  const rounds = reply.rounds.map((round) => ({
    ...round,
    calls: round.calls.map((call) => (isOpen(call) ? { ...call, status: 'failed' as const } : call)),
  }))
  return { ...reply, rounds }
}
