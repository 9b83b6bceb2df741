/** The operation record: what an operation takes, returns and does. REST, tRPC and the OpenAPI document read it. */

import type { Logger } from 'pino'
import type { z } from 'zod'
import type { Config } from '../config/config.ts'
import type { DownloadContent } from '../http/download.ts'
import type { UploadOptions } from '../http/form-body.ts'
import type { ImplicitCredentials } from '../http/request.ts'
import type { ServiceError } from '../lib/errors.ts'
import type { RequestInstrumentation } from '../telemetry/request-instrumentation.ts'

/** Where the operation is in the REST API; the full path, so that a search for a URL finds it. */
export interface Http {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** `{name}` is a path parameter: the input field of that name. */
  readonly path: `/${string}`
}

export interface AuthPolicy<K extends CallerKind = CallerKind> {
  readonly callers: readonly K[]
  /** Accepts signed-in users only, whatever key is sent. */
  readonly needs?: 'user' | 'administrator'
  /** The error for a valid key of another kind; `insufficient_permissions` unless given. */
  readonly wrongKind?: 'invalid_api_key'
  /** Calls do not count against the rate limits of their key. */
  readonly isUncounted?: true
  /** The media type of a body sent with implicit credentials; JSON unless given. */
  readonly implicitBodyType?: string
}

export interface RequestOptions<D = never, C extends AnyCaller = AnyCaller> {
  /** What the path's parameters must be, checked before the caller is authenticated. */
  readonly path?: z.ZodType
  readonly body?: 'definition'
  /** The body is a form with a `file` in it: where the file goes, and how large it may be. */
  readonly upload?: (context: CallContext<C, D>) => Promise<Pick<UploadOptions, 'files' | 'limit'>>
  /** The body alone, where the input also has path or header fields. */
  readonly bodySchema?: z.ZodType
  /** Fields of a body that are dropped: those of a response that is sent back changed. */
  readonly ignoredFields?: readonly string[]
  /** The maximum size of a JSON body; 1 MiB unless given. */
  readonly maxBodyBytes?: (config: Config) => number
  readonly maxJsonValues?: number
  readonly headers?: Readonly<Record<string, string>>
  /** The last path parameter takes the rest of the path, slashes included. */
  readonly takesRest?: true
}

interface ResponseOptions {
  readonly status?: 201
  /** The response is bytes that a client uploaded. */
  readonly download?: true
  /** The response is a page, and so is a failure. */
  readonly page?: (failure: ServiceError) => Page
  readonly events?: z.ZodType
}

export interface OperationDocs {
  readonly summary: string
  readonly description?: string
  readonly failures?: Readonly<Record<number, string>>
}

export interface Call<D, C extends AnyCaller, I> {
  readonly context: CallContext<C, D>
  readonly input: I
  readonly signal: AbortSignal
  readonly wantsEvents: boolean
}

export type OperationKind = 'query' | 'mutation'

interface OperationDefinition<D, K extends CallerKind, I extends z.ZodType, O extends z.ZodType>
  extends Omit<Operation<D, OperationKind, I, O>, 'kind' | 'tag' | 'auth' | 'request' | 'run'> {
  readonly auth?: AuthPolicy<K>
  readonly request?: RequestOptions<D, Extract<AnyCaller, { kind: K }>>
  readonly run: (
    call: Call<D, Extract<AnyCaller, { kind: K }>, z.output<I>>,
  ) => Answer<z.output<O>> | Promise<Answer<z.output<O>>>
}

type Answer<O> = O | JsonBytes | EventStream | Download | Page

/** `D` is what it needs of the service; the list of all operations requires everything that any of them needs. */
export interface Operation<
  D = never,
  Kind extends OperationKind = OperationKind,
  I extends z.ZodType = z.ZodType,
  O extends z.ZodType = z.ZodType,
> {
  readonly kind: Kind
  readonly tag: string
  /** Absent: the operation is in the tRPC API only. */
  readonly http?: Http
  /** False: the operation is in the REST API only. */
  readonly rpc?: false
  readonly auth: AuthPolicy
  readonly request?: RequestOptions<D>
  readonly response?: ResponseOptions
  /** Present with `http`. */
  readonly docs?: OperationDocs
  readonly input: I
  readonly output: O
  readonly run: (call: Call<D, AnyCaller, unknown>) => unknown
}

export interface NamedOperation<D = never> {
  readonly name: string
  readonly operation: Operation<D>
}

/** Defines the operations of a module. They share a tag in the OpenAPI document, and a policy unless one has its own. */
export function operationsOf<D>() {
  return <Shared extends CallerKind>(tag: string, auth: AuthPolicy<Shared>) => {
    const defineAs =
      <Kind extends OperationKind>(kind: Kind) =>
      <I extends z.ZodType, O extends z.ZodType, K extends CallerKind = Shared>(
        definition: OperationDefinition<D, K, I, O>,
      ): Operation<D, Kind, I, O> =>
        ({ auth, ...definition, kind, tag }) as unknown as Operation<D, Kind, I, O>
    return { query: defineAs('query'), mutation: defineAs('mutation') }
  }
}

export interface ConsoleUser {
  readonly id: string
  readonly email: string
  readonly isAdministrator: boolean
}

/** A server that presented a parent key, or a console user, who works with one of their parent keys. */
export interface ParentCaller {
  readonly kind: 'parent'
  /** The public id of the parent key: the owner of everything the caller may see. */
  readonly tenantId: string
  /** Set without a key; the tenant is then the user's active key. */
  readonly user?: ConsoleUser
}

/** A widget or embed that presented an agent key. */
export interface AgentCaller {
  readonly kind: 'agent'
  readonly tenantId: string
  readonly agentId: string
}

/** A client that presented a token for one artifact and those related to it. */
export interface TokenCaller {
  readonly kind: 'token'
  readonly tenantId: string
  readonly artifactId: string
  readonly use: 'upload' | 'view'
  /** Unix seconds. */
  readonly expiresAt: number
}

export type Caller = ParentCaller | AgentCaller

export type AnyCaller = Caller | TokenCaller

export type CallerKind = AnyCaller['kind']

/** What is known of a request before its caller is authenticated. */
export interface RequestMetadata {
  readonly instrumentation: RequestInstrumentation
  readonly requestId: string
  /** The client's address; read from the proxy's header only when the proxy is trusted. */
  readonly clientAddress: string
  readonly bearer: string | undefined
  /** The artifact token in the query of a read; undefined without one, and where tokens are not accepted there. */
  readonly token?: string | undefined
  /** A cookie or proxy headers; undefined with a bearer token, and where only a key is accepted. */
  readonly implicit: ImplicitCredentials | undefined
  /** The `Origin` header, unless it names this service; undefined for callers that are not pages. */
  readonly foreignOrigin?: string | undefined
}

/** The context of one call. A class, because accessors of object literals are slow on this path. */
export class CallContext<C extends AnyCaller = Caller, D = unknown> {
  readonly deps: D
  readonly metadata: RequestMetadata
  /** Response headers as a flat list of names and values, written on success and on failure. */
  readonly headers: string[] = []
  private authenticated: C | undefined

  constructor(deps: D, metadata: RequestMetadata) {
    this.deps = deps
    this.metadata = metadata
  }

  get caller(): C {
    if (this.authenticated === undefined) throw new Error('the caller was read before it was authenticated')
    return this.authenticated
  }

  set caller(caller: C) {
    this.authenticated = caller
    this.metadata.instrumentation.caller = caller
  }

  setHeader(name: string, value: string): void {
    this.headers.push(name, value)
  }
}

export function withRequestLog<D extends { readonly log: Logger }>({
  deps,
  metadata,
}: Pick<CallContext<AnyCaller, D>, 'deps' | 'metadata'>): D {
  return { ...deps, log: deps.log.child(metadata.instrumentation.line) }
}

export interface Authenticator {
  /** Looks up a key or token, or else the user of a session or a trusted proxy; undefined without valid credentials. */
  find(metadata: RequestMetadata): Promise<AnyCaller | undefined> | undefined
}

/** A JSON answer that is already encoded, in pieces of any size. */
export class JsonBytes {
  readonly pieces: readonly Uint8Array[]

  constructor(bytes: Uint8Array | readonly Uint8Array[]) {
    this.pieces = bytes instanceof Uint8Array ? [bytes] : bytes
  }

  toString(): string {
    return Buffer.concat(this.pieces).toString()
  }
}

/** Server-sent events, complete ones in each item; the REST API adds the head, the heartbeat and the end. */
export class EventStream {
  readonly events: AsyncIterator<Uint8Array, void, void>
  /** Renders a failure after the first event. A stream that has this ends with its own event instead of `[DONE]`. */
  readonly renderFailure: ((failure: ServiceError) => Uint8Array) | undefined

  constructor(
    events: AsyncIterator<Uint8Array, void, void>,
    renderFailure?: (failure: ServiceError) => Uint8Array,
  ) {
    this.events = events
    this.renderFailure = renderFailure
  }
}

/** Uploaded bytes, sent as they are; the REST API adds ranges, conditions and safe headers. */
export class Download {
  readonly content: DownloadContent

  constructor(content: DownloadContent) {
    this.content = content
  }
}

/** A page; the REST API adds headers that keep the page, and the token in its address, private. */
export class Page {
  readonly html: string

  constructor(html: string) {
    this.html = html
  }
}
