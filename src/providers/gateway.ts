/** The backend that is a language-model gateway: any server that speaks the OpenAI-compatible API. */

import { lookup as lookupName } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { Pool } from 'undici'
import { isJsonObject } from '../lib/formats/json.ts'
import { createGuardedConnector } from '../lib/net.ts'
import { isCallersMistake } from './failures.ts'
import {
  EventExchange,
  type Exchange,
  JsonExchange,
  type Reads,
  type Refusal,
  type ToFailure,
} from './http-exchange.ts'
import { BackendFailure, type BackendModel, type BackendRequest, type ChatBackend } from './provider.ts'

/** What a gateway backend needs to know. */
export interface GatewayOptions {
  /** The provider's name as operators write it. */
  readonly name: string
  /** The API's base, ending in `/v1`; a query in it is sent with every call. */
  readonly url: string
  /** Sent to the origin of `url`, and nowhere else. */
  readonly apiKey?: string
  readonly timings: EgressTimings & {
    /** All of a model list; 10 s when absent. */
    readonly modelListMs?: number
  }
  /** The largest chat completion, or model list, that is read; 16 MiB when absent. */
  readonly maxAnswerBytes?: number
  /** Resolves the host name of `url`; the system's resolver when absent. */
  readonly lookup?: LookupFunction
  /** What a refusal means, for servers that do not mean what they say; with it, whatever it keeps of `said` is for the caller. */
  readonly mendRefusal?: (refusal: SaidRefusal) => SaidRefusal
}

/** An answer outside 2xx, and what its body says. */
export type SaidRefusal = Pick<BackendFailure, 'said'> & { readonly status: number }

/** The largest embedding list that is read: 2048 vectors of 1536 numbers fit. */
const maxEmbeddingsBytes = 64 * 1024 * 1024

/**
 * Makes a backend of an OpenAI-compatible server. The caller's headers never reach it.
 * Decision: 7; Security: 2.10
 */
export function createGatewayBackend(options: GatewayOptions): ChatBackend {
  const base = new URL(options.url)
  const toPath = (path: string) => `${base.pathname.replace(/\/+$/, '')}${path}${base.search}`
  const chatPath = toPath('/chat/completions')
  const embeddingsPath = toPath('/embeddings')
  const modelsPath = toPath('/models')
  const {
    name,
    timings,
    lookup,
    maxAnswerBytes = 16 * 1024 * 1024,
    mendRefusal = keepCallersMistake,
  } = options
  // An empty key is none: it would be found, and blotted out, between any two letters.
  const apiKey = options.apiKey || undefined
  const egress = createEgress({
    origin: base.origin,
    timings,
    toFailure: (refusal) => toFailure(refusal, apiKey, mendRefusal),
    ...(apiKey !== undefined && { apiKey }),
    ...(lookup !== undefined && { lookup }),
  })
  return {
    name,
    address: addressOf(base),
    complete: (request) => egress.readJson(toCall(chatPath, request), maxAnswerBytes),
    stream: (request) => egress.readEvents(toCall(chatPath, request)),
    embed: (request) => egress.readJsonPieces(toCall(embeddingsPath, request), maxEmbeddingsBytes),
    async listModels(signal) {
      const deadline = AbortSignal.timeout(timings.modelListMs ?? 10_000)
      const call = { path: modelsPath, signal: AbortSignal.any([signal, deadline]) }
      try {
        return parseModels(await egress.readJson(call, maxAnswerBytes), name)
      } catch (thrown) {
        if (thrown !== deadline.reason) throw thrown
        throw new BackendFailure('timeout', 'The backend took too long to list its models.', {
          cause: thrown,
        })
      }
    },
    close: () => egress.close(),
  }
}

function toCall(path: string, { body, signal, trace }: BackendRequest): EgressCall {
  return { path, body: JSON.stringify(body), signal, trace }
}

function addressOf({ hostname, port, protocol }: URL): { host: string; port: number } {
  return { host: hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) }
}

/** What a server says of other failures is not for the caller. Decision: 4 (last paragraph). */
function keepCallersMistake(refusal: SaidRefusal): SaidRefusal {
  return isCallersMistake(refusal) ? refusal : { ...refusal, said: undefined }
}

function toFailure(
  { status: sentStatus, headers, body }: Refusal,
  apiKey: string | undefined,
  mendRefusal: (refusal: SaidRefusal) => SaidRefusal,
): BackendFailure {
  const { status, said } = mendRefusal({ status: sentStatus, said: findSaid(body, apiKey) })
  const retryAfterSeconds = findRetryAfterSeconds(headers['retry-after'], headers.date)
  return new BackendFailure('status', `The backend answered ${status}.`, {
    status,
    ...(said !== undefined && { said }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  })
}

type Header = string | string[] | undefined

/** Reads `Retry-After`: seconds, or a date, which is measured by the clock of the one who set it. */
function findRetryAfterSeconds(retryAfter: Header, date: Header): number | undefined {
  if (typeof retryAfter !== 'string') return undefined
  if (/^\d{1,9}(\.\d+)?$/.test(retryAfter)) return Math.ceil(Number(retryAfter))
  // Date.parse finds a date in much that is none, such as `-5`.
  if (!retryAfter.endsWith('GMT')) return undefined
  const waitMs = Date.parse(retryAfter) - Date.parse(String(date))
  return Number.isNaN(waitMs) ? undefined : Math.max(0, Math.ceil(waitMs / 1000))
}

/**
 * Reads what an error body says, in the shapes in use: `{error: {message, code, param}}` (OpenAI), `{error: "text"}` (Ollama),
 * `{message, code, param}` (vLLM), `{detail: "text"}` and `{detail: [{msg}]}` (FastAPI).
 */
function findSaid(body: Buffer, apiKey: string | undefined): BackendFailure['said'] {
  const whole = parseJson(body)
  if (!isJsonObject(whole)) return undefined
  const error = isJsonObject(whole.error) ? whole.error : whole
  const [detail] = Array.isArray(whole.detail) ? whole.detail : []
  const texts = [error.message, whole.error, whole.detail, isJsonObject(detail) ? detail.msg : undefined]
  const message = texts.find((text) => typeof text === 'string' && text !== '')
  if (typeof message !== 'string') return undefined
  const clean = (text: string) => redact(text, apiKey).slice(0, 500).toWellFormed()
  const code = codesOfTypes.get(error.type) ?? error.code
  return {
    message: clean(message),
    ...(typeof code === 'string' && { code: clean(code) }),
    ...(typeof error.param === 'string' && { param: clean(error.param) }),
  }
}

/** What llama-server says in an error's `type`; its `code` repeats the status. */
const codesOfTypes: ReadonlyMap<unknown, string> = new Map([
  ['exceed_context_size_error', 'context_length_exceeded'],
])

/** Blots out our key, and whatever else looks like one: some servers quote the key they were given. */
function redact(text: string, apiKey: string | undefined): string {
  const withoutKey = apiKey === undefined ? text : text.replaceAll(apiKey, '[redacted]')
  return withoutKey
    .replace(/\bBearer\s+[^\s"',;]+/gi, 'Bearer [redacted]')
    .replace(/\bsk-[\w*.-]{6,}/g, '[redacted]')
}

/** Reads a model list; entries that are no models are left out. */
function parseModels(body: Buffer, provider: string): readonly BackendModel[] {
  const list = parseJson(body)
  // Ollama writes the list of no models as null.
  const data = isJsonObject(list) && list.data === null ? [] : isJsonObject(list) && list.data
  if (!Array.isArray(data)) {
    throw new BackendFailure('protocol', 'The backend did not answer with a model list.')
  }
  return data.filter(isListedModel).map((model) => toModel(model, provider))
}

interface ListedModel extends Readonly<Record<string, unknown>> {
  readonly id: string
}

function isListedModel(entry: unknown): entry is ListedModel {
  return isJsonObject(entry) && typeof entry.id === 'string' && entry.id !== ''
}

function toModel(listed: ListedModel, provider: string): BackendModel {
  const { id, created, owned_by: ownedBy, meta } = listed
  // In order: OpenRouter and LiteLLM, vLLM, Groq, llama-server (what it was started with, what the model was trained with).
  const lengths = [listed.context_length, listed.max_model_len, listed.context_window]
  const own = isJsonObject(meta) ? [meta.n_ctx, meta.n_ctx_train] : []
  const contextLength = [...lengths, ...own].find(isCount)
  return {
    id,
    created: isCount(created) ? created : 0,
    ownedBy: typeof ownedBy === 'string' ? ownedBy : provider,
    ...(contextLength !== undefined && { contextLength }),
    ...(id.endsWith(newestTag) && { aliases: [id.slice(0, -newestTag.length)] }),
    chats: !embeddingNames.test(id),
  }
}

/** What Ollama lists a model with that was pulled without a tag, and takes for granted in requests. */
const newestTag = ':latest'

/** What embedding models are called; the second half are those of Ollama's library that do not say so. */
const embeddingNames = /embed|(^|\/)(all-minilm|bge-|gte-|e5-|paraphrase-multilingual)/i

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}

/** The value of a JSON text, or undefined where it is none. */
function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

export type { Refusal }

/** How long each step of a call may take; undici checks them about twice a second, so they end up to a second late. */
export interface EgressTimings {
  readonly connectMs: number
  /** From the request being written to the answer's head being read. */
  readonly firstByteMs: number
  /** Between two reads of the answer's body; stands still while the reader is slow. */
  readonly idleMs: number
}

/** Where an egress leads, and what it carries there. */
export interface EgressOptions {
  readonly origin: string
  /** Sent as a Bearer token to `origin`; there is no way to send it elsewhere. Security: 2.10 */
  readonly apiKey?: string
  readonly timings: EgressTimings
  /** Resolves the origin's host name; the system's resolver when absent. */
  readonly lookup?: LookupFunction
  /** Says what an answer outside 2xx means; its body is cut off at 64 KiB. */
  readonly toFailure: ToFailure
}

/** One call, as the egress sends it: no header but its own, and those of a trace, leaves the service. */
export interface EgressCall {
  /** Path and query, starting with `/`. */
  readonly path: string
  /** A JSON text makes the call a POST; without it, it is a GET. */
  readonly body?: string
  readonly signal: AbortSignal
  readonly trace?: Readonly<Record<string, string>> | undefined
}

/** HTTP calls to one origin. Redirects are not followed: a 3xx is a refusal. */
export interface Egress {
  /**
   * Answers with the body of a 2xx whose type is JSON.
   * @throws BackendFailure; the signal's reason once the signal is aborted
   */
  readJson(call: EgressCall, maxBytes: number): Promise<Buffer>
  /** The same, in the pieces it came in: joining large ones costs more than all else that is done with them. */
  readJsonPieces(call: EgressCall, maxBytes: number): Promise<readonly Buffer[]>
  /**
   * Answers with the body of a 2xx whose type is server-sent events, as soon as its head is in. Its `next` is called again
   * only after the last one settled.
   * @throws BackendFailure before and during the iteration; the signal's reason once the signal is aborted
   */
  readEvents(call: EgressCall): Promise<AsyncIterator<Buffer, void, void>>
  /** Ends the calls in flight and closes the sockets. */
  close(): Promise<void>
}

const maxHeadBytes = 16_384

/** Below the 5 s after which uvicorn (vLLM, LiteLLM) closes an idle connection without having announced it. */
const idleConnectionMs = 4_000

/** Opens the way to one origin. Security: 2.10 */
export function createEgress(options: EgressOptions): Egress {
  const { connectMs, firstByteMs, idleMs } = options.timings
  const { toFailure } = options
  const pool = new Pool(options.origin, {
    connect: createGuardedConnector(connectMs, options.lookup ?? lookupName),
    connections: null,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: idleConnectionMs,
    maxHeaderSize: maxHeadBytes,
    headersTimeout: firstByteMs,
    bodyTimeout: idleMs,
  })
  // Without accept-encoding any coding would be welcome (RFC 9110, 12.5.3), and nothing here decodes one.
  const getHeaders = ['accept', 'application/json', 'accept-encoding', 'identity', 'user-agent', 'parley']
  if (options.apiKey !== undefined) getHeaders.push('authorization', `Bearer ${options.apiKey}`)
  const postHeaders = ['content-type', 'application/json', ...getHeaders]

  function send<Answer>(call: EgressCall, exchange: Exchange<Answer>): Promise<Answer> {
    if (call.signal.aborted) return Promise.reject(call.signal.reason)
    const { path, body, trace } = call
    const answer = exchange.begin()
    pool.dispatch(
      body === undefined
        ? { path, method: 'GET', headers: getHeaders }
        : { path, method: 'POST', headers: withTrace(postHeaders, trace), body },
      exchange,
    )
    return answer
  }

  return {
    readJson: (call, maxBytes) => send(call, new JsonExchange(call.signal, toFailure, maxBytes, takeWhole)),
    readJsonPieces: (call, maxBytes) =>
      send(call, new JsonExchange(call.signal, toFailure, maxBytes, takePieces)),
    readEvents: (call) => send(call, new EventExchange(call.signal, toFailure)),
    close: () => pool.destroy(),
  }
}

function withTrace(headers: string[], trace: EgressCall['trace']): string[] {
  return trace === undefined ? headers : [...headers, ...Object.entries(trace).flat()]
}

const takeWhole = (reads: Reads) => reads.take()

const takePieces = (reads: Reads) => reads.takePieces()
