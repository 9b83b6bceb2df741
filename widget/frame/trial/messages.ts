/**
 * Defines the messages between the console and the frame of a trial (ADR 0063). They use a second
 * `MessagePort`, which only the console offers.
 */
import type { ChatChunk } from '../../../src/providers/chat-api.ts'
import type { ErrorResponse } from '../chat/to-failure.ts'
import type { AgentSelf, ChatBody } from '../chat/transport.ts'
import type { Entry } from '../conversation.ts'

/** A page tool whose results the tester enters. The name starts with `postMessage_`. */
export interface MockTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema: { readonly type: 'object'; readonly [field: string]: unknown }
  readonly annotations?: { readonly title?: string; readonly destructiveHint?: boolean }
}

/** Messages from the console. */
export type TrialCommand =
  /** Must be sent first. `entries` is the conversation that the frame shows again. */
  | { readonly type: 'start'; readonly agent: AgentSelf; readonly entries: readonly Entry[] }
  /** The definition has changed. */
  | { readonly type: 'agent'; readonly agent: AgentSelf }
  | { readonly type: 'tools'; readonly tools: readonly MockTool[] }
  /** Sends a message after the user's first `position` messages, and removes all later messages. */
  | { readonly type: 'ask'; readonly text: string; readonly position: number }
  | { readonly type: 'stop' }
  | { readonly type: 'clear' }
  | { readonly type: 'chunks'; readonly id: string; readonly chunks: readonly ChatChunk[] }
  /** The answer is complete. With `error`, it has failed; null means that the server did not respond. */
  | { readonly type: 'answered'; readonly id: string; readonly error?: ErrorResponse | null }
  | { readonly type: 'tool-result'; readonly id: string; readonly text: string; readonly isError: boolean }

/** Messages from the frame. */
export type TrialEvent =
  /** The frame needs an answer from the model. */
  | { readonly type: 'chat'; readonly id: string; readonly body: ChatBody }
  | { readonly type: 'chat-stopped'; readonly id: string }
  | {
      readonly type: 'tool-call'
      readonly id: string
      readonly name: string
      readonly args: Readonly<Record<string, unknown>>
    }
  | { readonly type: 'tool-stopped'; readonly id: string }
  /** The tester has sent a message in the frame, after `position` earlier messages. */
  | { readonly type: 'asked'; readonly text: string; readonly position: number }
  /** The conversation has changed. Not sent for each piece of streamed text. */
  | { readonly type: 'entries'; readonly entries: readonly Entry[] }
