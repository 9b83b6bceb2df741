/** One record per operation: what it takes, what it gives, what it does; both doors and the document read it. */

import type { Logger } from 'pino'
import type { z } from 'zod'
import type { Config } from '../config/config.ts'
import type { DownloadContent } from '../http/download.ts'
import type { FileSink, SizeLimit } from '../http/form-body.ts'
import type { Ambient } from '../http/request.ts'
import type { ServiceError } from '../lib/errors.ts'
import type { RequestInstrumentation } from '../telemetry/request-instrumentation.ts'

/** Where the operation lies in the REST door; the full path, so that a search for a URL finds it. */
export interface Http {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** `{name}` is a path parameter, an input field of that name. */
  readonly path: `/${string}`
  readonly tag: string
  readonly summary: string
  readonly description?: string
}

/** What REST and the document need to know and zod cannot say. */
export interface Wire<K extends CallerKind = CallerKind> {
  readonly errors: 'agent' | 'openai' | 'artifact'
  /** Which credentials are good for it; none at all are asked for where this is empty. */
  readonly callers: readonly K[]
  /** Calls do not count against the limits of their key: outside `/v1` there are none. Decision: 3 (Rate limits). */
  readonly isUncounted?: true
  /** What the path's parameters must be, looked at before anybody is asked who they are. */
  readonly pathFirst?: z.ZodType
  /** Only somebody whom a proxy has signed in may call, whatever key is sent. */
  readonly needs?: 'user' | 'administrator'
  /** Success status, 200 unless given. */
  readonly status?: 201
  /** The body is an agent definition in one of its five media types, or a form with a `file` in it. */
  readonly body?: 'definition' | 'upload'
  /** The body alone, where the input has path or header fields beside it. */
  readonly bodySchema?: z.ZodType
  /** Fields of a body that are left out: those of an answer that is sent back changed. */
  readonly ignoredFields?: readonly string[]
  /** The most a body, or the file in it, may hold; 1 MiB unless given. */
  readonly maxBodyBytes?: (config: Config) => number
  /** The most values its JSON may hold, where the usual limit is too low. */
  readonly maxJsonValues?: number
  /** Query parameters that are whole numbers. */
  readonly integers?: readonly string[]
  /** Request headers that are input fields. */
  readonly headers?: Readonly<Record<string, string>>
  /** The last path parameter takes the rest of the path, slashes and all. */
  readonly takesRest?: true
  /** The answer is bytes that somebody uploaded. */
  readonly download?: true
  /** The answer is a page, and so is this one that tells of a failure. */
  readonly page?: (failure: ServiceError) => Page
  /** The answer can be a stream of these events. */
  readonly sse?: z.ZodType
  /** Statuses this operation can fail with beside those of every operation, with what they mean here. */
  readonly failures?: Readonly<Record<number, string>>
}

/** A call of an operation, as `run` receives it. */
export interface Call<D, C extends AnyCaller, I> {
  readonly context: CallContext<C, D>
  readonly input: I
  /** Aborted when the caller leaves. */
  readonly signal: AbortSignal
  /** A stream of events is asked for (`Accept: text/event-stream`). */
  readonly wantsEvents: boolean
}

/** Where the file of an upload goes. */
export interface UploadTarget {
  readonly files: FileSink
  readonly limit: SizeLimit
}

export type OperationKind = 'query' | 'mutation'

interface OperationDefinition<
  D,
  Kind extends OperationKind,
  K extends CallerKind,
  I extends z.ZodType,
  O extends z.ZodType,
> {
  readonly kind: Kind
  /** Absent: the operation is on the typed door only. */
  readonly http?: Http
  /** False: the operation is on the REST door only. */
  readonly rpc?: false
  readonly wire: Wire<K>
  /** With `body: 'upload'`: where the file goes, and how large it may be. */
  readonly upload?: (context: CallContext<Extract<AnyCaller, { kind: K }>, D>) => Promise<UploadTarget>
  readonly input: I
  readonly output: O
  readonly run: (
    call: Call<D, Extract<AnyCaller, { kind: K }>, z.output<I>>,
  ) => Answer<z.output<O>> | Promise<Answer<z.output<O>>>
}

/** What `run` may return: the output, the same as bytes or events where nothing needs decoding, a download or a page. */
type Answer<O> = O | JsonBytes | EventStream | Download | Page

/**
 * An operation, whoever may call it. `D` is what it needs of the service: an operation that needs less can stand where one that needs
 * more is expected, so that the list of all operations says what the service must provide.
 */
export interface Operation<
  D = never,
  Kind extends OperationKind = OperationKind,
  I extends z.ZodType = z.ZodType,
  O extends z.ZodType = z.ZodType,
> {
  readonly kind: Kind
  readonly http?: Http
  readonly rpc?: false
  readonly wire: Wire
  readonly upload?: (context: CallContext<AnyCaller, D>) => Promise<UploadTarget>
  readonly input: I
  readonly output: O
  readonly run: (call: Call<D, AnyCaller, unknown>) => unknown
}

/** An operation and its name (`agents.create`). */
export interface NamedOperation<D = never> {
  readonly name: string
  readonly operation: Operation<D>
}

/** How the operations of one module are defined: with its own `Dependencies`. */
export function operationsOf<D>() {
  return <Kind extends OperationKind, K extends CallerKind, I extends z.ZodType, O extends z.ZodType>(
    definition: OperationDefinition<D, Kind, K, I, O>,
  ): Operation<D, Kind, I, O> => definition as unknown as Operation<D, Kind, I, O>
}

/** Somebody whom a proxy has signed in. Contract: Authentication 3. */
export interface ConsoleUser {
  readonly id: string
  readonly email: string
  readonly isAdministrator: boolean
}

/**
 * A server that presented a parent key, or a user who works in the console without one; the tenant is the key's record. Contract:
 * Authentication 1, 3.
 */
export interface ParentCaller {
  readonly kind: 'parent'
  /** The parent key's public id: the owner of everything it may see. */
  readonly tenantId: string
  /** Who it is, where no key was presented; the tenant is then the user's active key. */
  readonly user?: ConsoleUser
}

/** A widget or embed that presented an agent key. Contract: Authentication 2. */
export interface AgentCaller {
  readonly kind: 'agent'
  readonly tenantId: string
  readonly agentId: string
}

/** Whoever presented a token for one artifact, and for those that belong to it. Decision: 9. */
export interface TokenCaller {
  readonly kind: 'token'
  /** Whose parent key the token was made with. */
  readonly tenantId: string
  readonly artifactId: string
  readonly use: 'upload' | 'view'
  /** Unix seconds. */
  readonly expiresAt: number
}

/** Who is calling, once the credential is known to be good. */
export type Caller = ParentCaller | AgentCaller

/** The same, where tokens count too. */
export type AnyCaller = Caller | TokenCaller

export type CallerKind = AnyCaller['kind']

/** What a door knows of a call before anybody is authenticated. */
export interface Arrival {
  readonly watch: RequestInstrumentation
  readonly requestId: string
  /** The client's address, read from the proxy's header only when the peer is trusted. */
  readonly clientAddress: string
  /** The bearer token, as sent; undefined without one. */
  readonly bearer: string | undefined
  /** The token in the address of something that is only read; undefined without one, and where none counts. Decision: 9. */
  readonly token?: string | undefined
  /** What else tells who is calling; undefined with a token, and where only a token counts. */
  readonly ambient: Ambient | undefined
}

/** The context of one call; `caller` is set by `authorize`. A class, because accessor literals cost on this path. */
export class CallContext<C extends AnyCaller = Caller, D = unknown> {
  /** What the operation's module needs of the service. */
  readonly deps: D
  readonly arrival: Arrival
  /** Response headers as a flat list of names and values; the door writes them on success and on failure. */
  readonly headers: string[] = []
  private authorized: C | undefined

  constructor(deps: D, arrival: Arrival) {
    this.deps = deps
    this.arrival = arrival
  }

  /** Who is calling. */
  get caller(): C {
    if (this.authorized === undefined) throw new Error('the caller was asked for before it was authorized')
    return this.authorized
  }

  set caller(caller: C) {
    this.authorized = caller
    this.arrival.watch.caller = caller
  }

  setHeader(name: string, value: string): void {
    this.headers.push(name, value)
  }
}

/** The same dependencies with a log that names the request in every line. */
export function withRequestLog<D extends { readonly log: Logger }>({
  deps,
  arrival,
}: Pick<CallContext<AnyCaller, D>, 'deps' | 'arrival'>): D {
  return { ...deps, log: deps.log.child(arrival.watch.line) }
}

/** Finds the caller behind the credentials of a request. */
export interface Authenticator {
  /**
   * Whose key or token was presented, or else whom a proxy or a session says is calling; undefined without either.
   * @throws ServiceError `invalid_value` when what the proxy says could mean two things.
   */
  find(arrival: Arrival): Promise<AnyCaller | undefined> | undefined
}

/** A JSON answer that is encoded already, in one piece or in several that were cut anywhere. */
export class JsonBytes {
  readonly pieces: readonly Uint8Array[]

  constructor(bytes: Uint8Array | readonly Uint8Array[]) {
    this.pieces = bytes instanceof Uint8Array ? [bytes] : bytes
  }

  toString(): string {
    return Buffer.concat(this.pieces).toString()
  }
}

/** Server-sent events, complete ones in each item; the door adds the head, the heartbeat and the end. */
export class EventStream {
  readonly events: AsyncIterator<Uint8Array, void, void>
  /**
   * The events a failure is told in, once others have been sent. A stream that has such events tells its end by one too; without them
   * the door ends it as the chat API does.
   */
  readonly tellFailure: ((failure: ServiceError) => Uint8Array) | undefined

  constructor(
    events: AsyncIterator<Uint8Array, void, void>,
    tellFailure?: (failure: ServiceError) => Uint8Array,
  ) {
    this.events = events
    this.tellFailure = tellFailure
  }
}

/** Bytes that somebody uploaded, sent as they are; the door adds ranges, conditions and the headers that keep them harmless. */
export class Download {
  readonly content: DownloadContent

  constructor(content: DownloadContent) {
    this.content = content
  }
}

/** A page for people; the door adds the headers that keep it, and the token in its address, to itself. */
export class Page {
  readonly html: string

  constructor(html: string) {
    this.html = html
  }
}
