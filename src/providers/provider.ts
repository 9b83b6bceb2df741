/** Defines the interface of model providers and their failures. */
import type { PricedProvider } from '../prices/lookup.ts'

export interface BackendRequest {
  /** A chat or embeddings request in the chat API's format; `model` is the provider's own id. */
  readonly body: Readonly<Record<string, unknown>>
  /**
   * Aborted when the client disconnects or a deadline passes; the provider must then stop within a second.
   */
  readonly signal: AbortSignal
  readonly trace?: Readonly<Record<string, string>> | undefined
}

export interface BackendModel {
  readonly id: string
  readonly created: number
  readonly ownedBy: string
  readonly contextLength?: number
  /** Unlisted ids that requests may also use. */
  readonly aliases?: readonly string[]
  /** False for embedding models, which cannot be an agent's default. */
  readonly chats: boolean
  /**
   * True for a chat model that also embeds; used as the default for embeddings if there is no embedding
   * model.
   */
  readonly embeds?: boolean
  /** Kinds of input that the model reads, such as `image`; absent if the provider does not list them. */
  readonly inputs?: readonly string[]
}

type UnknownOutcome = 'book' | 'release'

/** The measure of answers in budgets: the reported usage, or their bytes. */
export type Metering = 'reported' | 'bytes'

/** A model provider. Returns bytes in the chat API's format, so that unchanged responses need no decoding. */
export interface ChatBackend {
  readonly name: string
  readonly address?: { readonly host: string; readonly port: number } | undefined
  /** Absent for a provider without prices. */
  readonly pricing?: PricedProvider
  /** Whether budgets book the reservation of a request whose connection was lost; `book` by default. */
  readonly unknownOutcome?: UnknownOutcome | undefined
  /** `reported` by default. */
  readonly metering?: Metering | undefined
  /** Returns one `chat.completion` object as JSON. @throws BackendFailure */
  complete(request: BackendRequest): Promise<Uint8Array>
  /**
   * Returns server-sent events once the provider accepts the request, in chunks that may end at any byte;
   * `return` aborts the call. @throws BackendFailure
   */
  stream(request: BackendRequest): Promise<AsyncIterator<Uint8Array, void, void>>
  /** Returns an embedding list as JSON, in chunks that may end at any byte. @throws BackendFailure */
  embed(request: BackendRequest): Promise<readonly Uint8Array[]>
  /** @throws BackendFailure */
  listModels(signal: AbortSignal): Promise<readonly BackendModel[]>
  close(): Promise<void>
}

export type BackendFailureKind = 'status' | 'unreachable' | 'timeout' | 'protocol'

/** A failed provider call; `failures.ts` maps it to the client's error. */
export class BackendFailure extends Error {
  override readonly name = 'BackendFailure'
  readonly kind: BackendFailureKind
  readonly status: number | undefined
  readonly retryAfterSeconds: number | undefined
  /** The provider's explanation, if the client may see it; mostly for invalid requests (400, 413, 422). */
  readonly said: { readonly message: string; readonly code?: string; readonly param?: string } | undefined
  readonly isFinal: boolean
  /**
   * Whether the provider reported the failure within its answer; `status` is then not the HTTP status of the
   * response.
   */
  readonly isInAnswer: boolean
  /** Whether the provider ended its answer before it was complete. */
  readonly isIncomplete: boolean

  constructor(
    kind: BackendFailureKind,
    message: string,
    details: {
      status?: number
      retryAfterSeconds?: number
      said?: { message: string; code?: string; param?: string }
      isFinal?: boolean
      isInAnswer?: boolean
      isIncomplete?: boolean
      cause?: unknown
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.kind = kind
    this.status = details.status
    this.retryAfterSeconds = details.retryAfterSeconds
    this.said = details.said
    this.isFinal = details.isFinal ?? false
    this.isInAnswer = details.isInAnswer ?? false
    this.isIncomplete = details.isIncomplete ?? false
  }
}

export interface ModelRoute {
  readonly backend: ChatBackend
  readonly model: string
}
