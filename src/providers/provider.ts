/** What the service asks of a language-model backend, and how a backend says that it failed. */

/** One request to a backend: a body of the chat API, ready to be serialised, and the signal that ends it. */
export interface BackendRequest {
  /** The chat completion (or embeddings) request; `model` is the backend's own id, `stream` says which answer is wanted. */
  readonly body: Readonly<Record<string, unknown>>
  /** Aborted when the caller leaves or a deadline passes: the backend must stop within a second. */
  readonly signal: AbortSignal
  /** What tells the backend which trace the call is a part of; undefined where nobody traces. */
  readonly trace?: Readonly<Record<string, string>> | undefined
}

/** A model as a backend lists it. */
export interface BackendModel {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  readonly ownedBy: string
  /** Tokens of context, when the backend says. */
  readonly contextLength?: number
  /** Other ids the backend knows it by; they are not listed. */
  readonly aliases?: readonly string[]
  /** False for embedding models, which cannot be an agent's default. */
  readonly chats: boolean
  /** True for a model that chats and embeds as well: the default for embeddings where no embedding model is. */
  readonly embeds?: boolean
}

/**
 * A source of chat completions and embeddings. Its answers are bytes in the chat API's own format, so that what needs no change is never
 * decoded and encoded again.
 */
export interface ChatBackend {
  /** The provider's name as operators write it: `mock`, `gateway`. */
  readonly name: string
  /** Where it is reached; undefined where it is in this process. */
  readonly address?: { readonly host: string; readonly port: number } | undefined
  /**
   * Answers with one whole `chat.completion` object, as JSON bytes.
   * @throws BackendFailure
   */
  complete(request: BackendRequest): Promise<Uint8Array>
  /**
   * Answers with server-sent events; resolves when the backend has accepted the request (its head is in). Each item is what
   * one read brought, cut anywhere. Leaving the iteration early (`return`) aborts the backend's call.
   * @throws BackendFailure before and during the iteration; an end of the iteration is the end of the backend's body.
   */
  stream(request: BackendRequest): Promise<AsyncIterator<Uint8Array, void, void>>
  /**
   * Answers with one whole embedding list, as JSON bytes in the pieces they came in, cut anywhere.
   * @throws BackendFailure
   */
  embed(request: BackendRequest): Promise<readonly Uint8Array[]>
  /**
   * The models the backend offers now.
   * @throws BackendFailure
   */
  listModels(signal: AbortSignal): Promise<readonly BackendModel[]>
  /** Lets go of sockets and timers. */
  close(): Promise<void>
}

/** How a backend failed: it answered with a status, could not be reached, was too slow, or spoke nonsense. */
export type BackendFailureKind = 'status' | 'unreachable' | 'timeout' | 'protocol'

/** A failed backend call, before it is decided what the caller sees of it. */
export class BackendFailure extends Error {
  override readonly name = 'BackendFailure'
  readonly kind: BackendFailureKind
  /** The backend's HTTP status, with kind `status`. */
  readonly status: number | undefined
  /** Seconds the backend asked to wait (`Retry-After`), if it did. */
  readonly retryAfterSeconds: number | undefined
  /** What the caller may read of it, above all of their own mistake (400, 413, 422, …): `{message, code, param}`. */
  readonly said: { readonly message: string; readonly code?: string; readonly param?: string } | undefined
  /** Another attempt of the same call makes no sense, though one of a later call may. */
  readonly isFinal: boolean

  constructor(
    kind: BackendFailureKind,
    message: string,
    details: {
      status?: number
      retryAfterSeconds?: number
      said?: { message: string; code?: string; param?: string }
      isFinal?: boolean
      cause?: unknown
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.kind = kind
    this.status = details.status
    this.retryAfterSeconds = details.retryAfterSeconds
    this.said = details.said
    this.isFinal = details.isFinal ?? false
  }
}

/** Where a request for a model goes. */
export interface ModelRoute {
  readonly backend: ChatBackend
  /** The id the backend itself knows. */
  readonly model: string
}
