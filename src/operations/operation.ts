/** Defines operations, which are used to build the REST API, the tRPC API and the OpenAPI document. */

import type { IncomingHttpHeaders } from 'node:http'
import type { Logger } from 'pino'
import type { z } from 'zod'
import type { Config } from '../config/config.ts'
import type { DownloadContent, GeneratedContent } from '../http/download.ts'
import type { UploadOptions } from '../http/form-body.ts'
import type { ImplicitCredentials } from '../http/request.ts'
import type { Latin1 } from '../http/response.ts'
import type { ServiceError } from '../lib/errors.ts'
import type { RequestInstrumentation } from '../telemetry/request-instrumentation.ts'

/** The method and the complete path, which makes the operation easy to find by its URL. */
export interface Http {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** `{name}` is a path parameter, which sets the input field with that name. */
  readonly path: `/${string}`
}

export interface AuthPolicy<K extends CallerKind = CallerKind> {
  readonly callers: readonly K[]
  /** Accepts only signed-in users and rejects all keys. */
  readonly needs?: 'user' | 'administrator'
  /** The error for a valid key of the wrong kind; `insufficient_permissions` by default. */
  readonly wrongKind?: 'invalid_api_key'
  /** Exempts calls from their key's rate limits, except calls with upload tokens. */
  readonly isUncounted?: true
  /** Accepts agent keys without a valid visitor token, even if the agent requires identified visitors. */
  readonly acceptsAnyVisitor?: true
  /** The media type required for a body sent with implicit credentials; JSON by default. */
  readonly implicitBodyType?: string
}

export interface RequestOptions<D = never, C extends AnyCaller = AnyCaller> {
  /** Validates the path parameters before the caller is authenticated. */
  readonly path?: z.ZodType
  readonly body?: 'definition'
  /** The JSON Schema of a YAML definition; required with `body`. */
  readonly definitionSchema?: Readonly<Record<string, unknown>>
  /** Set for a form with a `file`; returns where to store the file, and its maximum size. */
  readonly upload?: (context: CallContext<C, D>) => Promise<Pick<UploadOptions, 'files' | 'limit'>>
  /** The body's schema, if the input also has path or header fields. */
  readonly bodySchema?: z.ZodType
  /** Body fields to ignore, so that clients can send back a modified response. */
  readonly ignoredFields?: readonly string[]
  /** Maximum size of a JSON body in bytes; 1 MiB by default. */
  readonly maxBodyBytes?: (config: Config) => number
  readonly maxJsonValues?: number
  /** Number of body bytes charged as one request; 256 KiB by default. */
  readonly bytesPerRequest?: number
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Returns true only for inputs that the schema accepts unchanged. REST then skips the schema, to save CPU
   * time.
   */
  readonly isPlainInput?: (input: unknown) => boolean
  /** Runs instead of the operation when a request has the `Last-Event-ID` header; the body is ignored. */
  readonly resume?: (context: CallContext<C, D>, signal: AbortSignal) => Promise<EventStream>
  /** The last path parameter matches the rest of the path, including slashes. */
  readonly takesRest?: true
}

interface ResponseOptions {
  readonly status?: 201 | 202
  /** Set for a response with a stored file; lists the media types for the OpenAPI document. */
  readonly download?: readonly string[]
  /** Set to the media type for a file that the server generates while sending it. */
  readonly generated?: string
  /** Set for an HTML response; also renders failures as HTML. */
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

type Answer<O> = O | JsonBytes | EventStream | Download | GeneratedFile | Page

/** `D` is the type of the operation's dependencies. */
export interface Operation<
  D = never,
  Kind extends OperationKind = OperationKind,
  I extends z.ZodType = z.ZodType,
  O extends z.ZodType = z.ZodType,
> {
  readonly kind: Kind
  readonly tag: string
  /** Absent if the operation exists only in the tRPC API. */
  readonly http?: Http
  /** False if the operation exists only in the REST API. */
  readonly rpc?: false
  readonly auth: AuthPolicy
  readonly request?: RequestOptions<D>
  readonly response?: ResponseOptions
  /** Required with `http`. */
  readonly docs?: OperationDocs
  readonly input: I
  readonly output: O
  readonly run: (call: Call<D, AnyCaller, unknown>) => unknown
}

export interface NamedOperation<D = never> {
  readonly name: string
  readonly operation: Operation<D>
}

/** Defines the operations of a module, which share an OpenAPI tag and a default access policy. */
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

/** A client with a parent key, or a console user who acts with one of their parent keys. */
export interface ParentCaller {
  readonly kind: 'parent'
  /** The parent key's public id; everything that the caller can access belongs to this key. */
  readonly tenantId: string
  /** Set for a console user, who sends no key; the tenant is then the user's active key. */
  readonly user?: ConsoleUser
  /** The key's own limits, if it has any. */
  readonly ownLimits?: OwnLimits
}

/**
 * One parent key's own limits. For each of them, the server applies the lower of this limit and the
 * corresponding setting.
 */
export interface OwnLimits {
  readonly requestsPerMinute: number | null
  readonly streams: number | null
}

/** A widget or embedding page that uses an agent key. */
export interface AgentCaller {
  readonly kind: 'agent'
  readonly tenantId: string
  readonly agentId: string
}

/** A client with a token for one artifact and, unless a visitor uses it, for its related artifacts. */
export interface TokenCaller {
  readonly kind: 'token'
  readonly tenantId: string
  readonly artifactId: string
  /** `attach` allows a visitor to upload one reserved artifact, but no related ones. */
  readonly use: 'upload' | 'view' | 'attach'
  /** Unix seconds. */
  readonly expiresAt: number
}

export type Caller = ParentCaller | AgentCaller

export type AnyCaller = Caller | TokenCaller

export type CallerKind = AnyCaller['kind']

/** Request metadata, available before the caller is authenticated. */
export interface RequestMetadata {
  readonly instrumentation: RequestInstrumentation
  readonly headers: IncomingHttpHeaders
  readonly requestId: string
  /** The client's address, read from a header only if a trusted proxy sent it. */
  readonly clientAddress: string
  /** `X-Forwarded-For`, if the peer is not a trusted proxy. */
  readonly ignoredForwardedFor?: string | undefined
  readonly bearer: string | undefined
  /** The artifact token in a GET or HEAD request's query; undefined on paths that do not accept one. */
  readonly token?: string | undefined
  /** A cookie or proxy headers; undefined with a bearer token, or on paths that accept only keys. */
  readonly implicit: ImplicitCredentials | undefined
  /** The `Origin` header; undefined for pages of this service and for callers that are not pages. */
  readonly foreignOrigin?: string | undefined
}

/** The visitor on whose behalf a call is made. */
export interface CallVisitor {
  /** `vis_` and 24 characters. */
  readonly id: string
  /** `verified` if a JWT asserts the identity, `named` if a request with a parent key does. */
  readonly kind: 'anonymous' | 'verified' | 'named'
  /** The authority that identifies the visitor; the agent for anonymous visitors. */
  readonly issuer: string
  /** The visitor's id at the issuer; the visitor id for anonymous visitors. */
  readonly subject: string
  readonly email: string | null
  readonly name: string | null
  readonly claims: Readonly<Record<string, unknown>>
}

/** The context of one call; a class, because accessors in object literals are slower. */
export class CallContext<C extends AnyCaller = Caller, D = unknown> {
  readonly deps: D
  readonly metadata: RequestMetadata
  /** Response headers as a flat list of names and values; sent with successful and failed responses. */
  readonly headers: string[]
  /** The visitor whose token was sent in a call with an agent key. */
  visitor: CallVisitor | undefined
  private authenticated: C | undefined

  constructor(deps: D, metadata: RequestMetadata, headers: string[] = []) {
    this.deps = deps
    this.metadata = metadata
    this.headers = headers
  }

  /** Returns the context of the same call with other dependencies. */
  withDeps(deps: D): CallContext<C, D> {
    const context = new CallContext<C, D>(deps, this.metadata, this.headers)
    context.authenticated = this.authenticated
    context.visitor = this.visitor
    return context
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
    for (let at = 0; at < this.headers.length; at += 2) {
      if (this.headers[at] !== name) continue
      this.headers[at + 1] = value
      return
    }
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
  /** Finds the caller by key, token, session or trusted proxy; undefined without valid credentials. */
  find(metadata: RequestMetadata): AnyCaller | undefined | Promise<AnyCaller | undefined>
}

/** A JSON response that is already encoded, in chunks that may end at any byte. */
export class JsonBytes {
  readonly pieces: readonly Uint8Array[]

  constructor(bytes: Uint8Array | readonly Uint8Array[]) {
    this.pieces = bytes instanceof Uint8Array ? [bytes] : bytes
  }

  toString(): string {
    return Buffer.concat(this.pieces).toString()
  }
}

/**
 * Server-sent events; each item contains complete events. The REST API adds headers, heartbeats and the final
 * event.
 */
export class EventStream {
  readonly events: AsyncIterator<Uint8Array | Latin1, void, void>
  /** Renders a failure after the first event. A stream with this function does not end with `[DONE]`. */
  readonly renderFailure: ((failure: ServiceError) => Uint8Array) | undefined

  constructor(
    events: AsyncIterator<Uint8Array | Latin1, void, void>,
    renderFailure?: (failure: ServiceError) => Uint8Array,
  ) {
    this.events = events
    this.renderFailure = renderFailure
  }
}

/** A stored file; the REST API adds ranges, conditional requests and security headers. */
export class Download {
  readonly content: DownloadContent

  constructor(content: DownloadContent) {
    this.content = content
  }
}

/** A text file that the server generates while sending it, so that its size has no limit. */
export class GeneratedFile {
  readonly content: GeneratedContent

  constructor(content: GeneratedContent) {
    this.content = content
  }
}

/**
 * An HTML page; the REST API adds headers that prevent caching and keep the URL, which may contain a token,
 * out of `Referer`.
 */
export class Page {
  readonly html: string

  constructor(html: string) {
    this.html = html
  }
}
