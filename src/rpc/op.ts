/** One record per operation: what it takes, what it gives, what it does; both doors and the document read it. */
import type { TRPCMutationProcedure, TRPCQueryProcedure } from '@trpc/server'
import type { z } from 'zod'
import type { Config } from '../config.ts'
import type { ServiceError } from '../errors.ts'
import type { AnyCaller, CallerKind } from '../keys/schema.ts'
import type { Download, EventStream, JsonBytes, Page } from './answer.ts'
import type { CallContext } from './context.ts'
import { operationProcedure } from './trpc.ts'

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
export interface Call<C extends AnyCaller, I> {
  readonly context: CallContext<C>
  readonly input: I
  /** Aborted when the caller leaves. */
  readonly signal: AbortSignal
  /** A stream of events is asked for (`Accept: text/event-stream`). */
  readonly wantsEvents: boolean
}

interface OperationDefinition<
  Kind extends 'query' | 'mutation',
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
  readonly input: I
  readonly output: O
  readonly run: (
    call: Call<Extract<AnyCaller, { kind: K }>, z.output<I>>,
  ) => Answer<z.output<O>> | Promise<Answer<z.output<O>>>
}

/** What `run` may return: the output, the same as bytes or events where nothing needs decoding, a download or a page. */
type Answer<O> = O | JsonBytes | EventStream | Download | Page

/** An operation whose types are no longer of interest: what the doors iterate over. */
export type AnyOperation = OperationDefinition<'query' | 'mutation', CallerKind, z.ZodType, z.ZodType>

type ProcedureOf<
  Kind extends 'query' | 'mutation',
  I extends z.ZodType,
  O extends z.ZodType,
> = Kind extends 'query'
  ? TRPCQueryProcedure<{ input: InputOf<I>; output: z.output<O>; meta: OperationMeta }>
  : TRPCMutationProcedure<{ input: InputOf<I>; output: z.output<O>; meta: OperationMeta }>

/** Where no field is required the whole may be left out. */
type InputOf<I extends z.ZodType> =
  Record<never, never> extends z.input<I> ? z.input<I> | undefined : z.input<I>

/** The record, as a procedure carries it. */
export interface OperationMeta {
  readonly operation: AnyOperation
}

/** Defines an operation and returns it as a typed procedure; the REST door finds the record in the procedure's meta. */
export function defineOp<
  Kind extends 'query' | 'mutation',
  K extends CallerKind,
  I extends z.ZodType,
  O extends z.ZodType,
>(definition: OperationDefinition<Kind, K, I, O>): ProcedureOf<Kind, I, O> {
  return operationProcedure(definition as unknown as AnyOperation) as unknown as ProcedureOf<Kind, I, O>
}
