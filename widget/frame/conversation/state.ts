/** The conversation as the frame holds it: what was said, and how far the newest reply has come. */
import type { Failure } from '../failure.ts'

/** A call of a tool of the page. */
export interface ToolCall {
  readonly id: string
  /** As the model wrote it, with the prefix. */
  readonly name: string
  /** What people are shown instead of the name. */
  readonly title?: string
  /** The model's JSON, unparsed: it may be none. */
  readonly argumentsText: string
  /** `asking`: the person has to approve it. */
  readonly status: 'asking' | 'running' | 'done' | 'failed' | 'denied'
  /** What the model is told; absent until it is known. */
  readonly result?: string
}

/** One answer of the model: its text, then the tools it wants called before it goes on. */
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
  /** `interrupted`: the page went away in the middle of it. */
  readonly status: 'streaming' | 'done' | 'stopped' | 'failed' | 'interrupted'
  readonly failure?: Failure
}

export type Entry = UserMessage | Reply

export interface Conversation {
  /** Oldest first. */
  readonly entries: readonly Entry[]
}

export const emptyConversation: Conversation = { entries: [] }

/** All the text of a reply, in order. */
export function textOf(reply: Reply): string {
  return reply.rounds
    .map(({ text }) => text)
    .filter((text) => text !== '')
    .join('\n\n')
}

/** The reply that is being written, if one is. */
export function findStreaming({ entries }: Conversation): Reply | undefined {
  const last = entries.at(-1)
  return last?.kind === 'reply' && last.status === 'streaming' ? last : undefined
}
