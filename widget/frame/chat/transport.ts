/** Defines the interface to a server, which has one implementation for tRPC and one for REST. */
import type { ChatChunk } from '../../../src/providers/chat-api.ts'

/** A content part in the chat API's format. Only stored conversations have uploads. */
export type AttachmentPart =
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }
  | { readonly type: 'file'; readonly file: { readonly filename: string; readonly file_data: string } }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'upload'; readonly upload: { readonly id: string } }

/** The fields of `ChatRequest` that the frame sends. */
export interface ChatBody {
  readonly model?: string
  readonly messages: readonly ChatMessage[]
  readonly tools?: readonly object[]
  readonly tool_choice?: 'none'
  readonly response_format?: object
  /** False keeps the server from storing the turn. */
  readonly store?: false
}

export type ChatMessage =
  | { readonly role: 'system' | 'user'; readonly content: string | readonly AttachmentPart[] }
  | {
      readonly role: 'assistant'
      readonly content: string | null
      readonly tool_calls?: readonly CalledTool[]
    }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string }

export interface CalledTool {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

/** The agent's properties that the frame uses. */
export interface AgentSelf {
  readonly id: string
  readonly name: string
  readonly greeting: string | null
  readonly title?: string | null
  readonly starters?: readonly string[]
  readonly conversations?: StoredConversations
  /** The note that the assistant can make mistakes. Null hides it; older servers do not send the field. */
  readonly disclaimer?: { readonly text: string | null; readonly url: string | null } | null
  /** Whether the visitor may dictate messages. */
  readonly dictation?: boolean
  /** Rules for the visitor's attachments; null or absent if the agent accepts none. */
  readonly attachments?: {
    readonly types: readonly ('image' | 'pdf' | 'text')[]
    readonly max_count: number
    readonly max_bytes: number
    /** Rules for larger files; older servers do not send the field. */
    readonly uploads?: { readonly extensions: readonly string[]; readonly max_bytes: number } | null
  } | null
  /** Whether the visitor may listen to answers. */
  readonly readAloud?: boolean
  /** Whether the widget suggests questions after an answer. */
  readonly followUps?: boolean
  /** Hosts whose images answers show; older servers do not send the field. */
  readonly imageHosts?: readonly string[]
  /** The tools that the server runs. */
  readonly tools?: readonly object[]
}

/** Properties of the agent's conversations on the server. */
export interface StoredConversations {
  /** If false, the browser stores the conversation. */
  readonly stored: boolean
  readonly keep_days: number | null
  /** Replaces the default notice. */
  readonly notice: { readonly text: string | null; readonly url: string | null } | null
  /** Whether the visitor can list earlier conversations. */
  readonly list: boolean
  readonly delete: boolean
  /** Whether the visitor can rate answers; older servers do not send the field. */
  readonly rate?: boolean
  /** Whether the visitor can ask for a person; older servers do not send the field. */
  readonly handover?: { readonly button: boolean; readonly timeout_seconds?: number }
  /** Seconds after its last activity during which a conversation is shown again after a reload. */
  readonly resume_seconds: number
}

export interface Transport {
  /** True if no agent adds instructions; `system` is then sent as a system message. */
  readonly takesSystem: boolean
  /** Yields a response's chunks in batches. @throws ChatFailure */
  stream(body: ChatBody, signal: AbortSignal): AsyncIterable<readonly ChatChunk[]>
  /** Resolves to undefined if the endpoint has no agent. @throws ChatFailure */
  readAgent(signal: AbortSignal): Promise<AgentSelf | undefined>
}
