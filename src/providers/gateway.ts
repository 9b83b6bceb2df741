/** Calls any server with an OpenAI-compatible API. */
import type { LookupFunction } from 'node:net'
import { isJsonObject, type JsonObject, listObjects, parseJson } from '../lib/formats/json.ts'
import type { Reach } from '../lib/net.ts'
import { isCallersMistake } from './failures.ts'
import { type HttpCall, HttpClient, type HttpTimings, type Rejection } from './http-client.ts'
import { BackendFailure, type BackendModel, type BackendRequest, type ChatBackend } from './provider.ts'

export interface GatewayOptions {
  readonly name: string
  readonly url: string
  readonly apiKey?: string | undefined
  readonly timings: HttpTimings & {
    readonly modelListMs?: number | undefined
  }
  /** Maximum size of a chat completion or model list, in bytes; 16 MiB by default. */
  readonly maxAnswerBytes?: number
  readonly lookup?: LookupFunction
  /** The addresses that may be called; `any` by default. */
  readonly reach?: Reach | undefined
  /** Corrects a server's misleading rejections. Clients may see the returned explanation (`said`). */
  readonly normalizeRejection?: (rejection: SaidRejection) => SaidRejection
}

export type SaidRejection = Pick<BackendFailure, 'said'> & { readonly status: number }

/** Maximum size of an embeddings response: enough for 2,048 vectors of 1,536 numbers. */
const maxEmbeddingsBytes = 64 * 1024 * 1024

export function createGatewayBackend(options: GatewayOptions): ChatBackend {
  const base = new URL(options.url)
  const { hostname, port, protocol } = base
  const toPath = (path: string) => `${base.pathname.replace(/\/+$/, '')}${path}${base.search}`
  const chatPath = toPath('/chat/completions')
  const embeddingsPath = toPath('/embeddings')
  const modelList = findModelList(hostname, toPath('/models'), options.apiKey)
  const {
    name,
    timings,
    lookup,
    reach,
    maxAnswerBytes = 16 * 1024 * 1024,
    normalizeRejection = keepCallersMistake,
  } = options
  // Treats an empty key as absent, because redaction would find it everywhere.
  const apiKey = options.apiKey || undefined
  const client = new HttpClient({
    origin: base.origin,
    apiKey,
    timings,
    lookup,
    reach,
    toFailure: (rejection) => toFailure(rejection, apiKey, normalizeRejection),
  })
  return {
    name,
    address: { host: hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) },
    complete: (request) => client.readWhole(toCall(chatPath, request), maxAnswerBytes),
    stream: (request) => client.readEvents(toCall(chatPath, request)),
    embed: (request) => client.readPieces(toCall(embeddingsPath, request), maxEmbeddingsBytes),
    async listModels(signal) {
      const deadline = AbortSignal.timeout(timings.modelListMs ?? 10_000)
      const call = { ...modelList, signal: AbortSignal.any([signal, deadline]) }
      try {
        return parseModels(await client.readWhole(call, maxAnswerBytes), name)
      } catch (thrown) {
        if (thrown !== deadline.reason) throw thrown
        throw new BackendFailure('timeout', 'The provider did not list its models in time.', {
          cause: thrown,
        })
      }
    },
    close: () => client.close(),
  }
}

/**
 * Returns the path and headers for the model list. Anthropic's list is not part of its OpenAI-compatible API,
 * needs other headers, and contains only 20 models by default.
 */
function findModelList(hostname: string, path: string, apiKey = ''): Pick<HttpCall, 'path' | 'headers'> {
  if (hostname !== 'api.anthropic.com') return { path }
  return {
    path: `${path}?limit=1000`,
    headers: { 'anthropic-version': '2023-06-01', ...(apiKey !== '' && { 'x-api-key': apiKey }) },
  }
}

function toCall(path: string, { body, signal, trace }: BackendRequest): HttpCall {
  return { path, body: JSON.stringify(body), signal, trace }
}

/** Hides the server's explanation from clients, unless the client's request was invalid. */
function keepCallersMistake(rejection: SaidRejection): SaidRejection {
  return isCallersMistake(rejection) ? rejection : { ...rejection, said: undefined }
}

function toFailure(
  { status: sentStatus, headers, body }: Rejection,
  apiKey: string | undefined,
  normalizeRejection: (rejection: SaidRejection) => SaidRejection,
): BackendFailure {
  const { status, said } = normalizeRejection({ status: sentStatus, said: findSaid(body, apiKey) })
  const retryAfterSeconds = findRetryAfterSeconds(headers['retry-after'], headers.date)
  return new BackendFailure('status', `The provider responded with ${status}.`, {
    status,
    ...(said !== undefined && { said }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  })
}

type Header = string | string[] | undefined

/**
 * Parses `Retry-After`, which is a number of seconds or a date. Compares a date with the response's `Date`
 * header, because the provider's clock may differ.
 */
function findRetryAfterSeconds(retryAfter: Header, date: Header): number | undefined {
  if (typeof retryAfter !== 'string') return undefined
  if (/^\d{1,9}(\.\d+)?$/.test(retryAfter)) return Math.ceil(Number(retryAfter))
  // Requires GMT, because Date.parse also accepts other strings, such as `-5`.
  if (!retryAfter.endsWith('GMT')) return undefined
  const waitMs = Date.parse(retryAfter) - Date.parse(String(date))
  return Number.isNaN(waitMs) ? undefined : Math.max(0, Math.ceil(waitMs / 1000))
}

/**
 * Reads error bodies from OpenAI (`error.message`), Ollama (`error`), vLLM (`message`) and FastAPI (`detail`,
 * a string or a list).
 */
function findSaid(body: Buffer, apiKey: string | undefined): BackendFailure['said'] {
  const whole = parseJson(body.toString())
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

/** Maps llama-server's error types to codes, because its own `code` repeats the HTTP status. */
const codesOfTypes: ReadonlyMap<unknown, string> = new Map([
  ['exceed_context_size_error', 'context_length_exceeded'],
])

/** Removes the API key and text that looks like a key, because some servers quote keys in errors. */
function redact(text: string, apiKey: string | undefined): string {
  const withoutKey = apiKey === undefined ? text : text.replaceAll(apiKey, '[redacted]')
  return withoutKey
    .replace(/\bBearer\s+[^\s"',;]+/gi, 'Bearer [redacted]')
    .replace(/\bsk-[\w*.-]{6,}/g, '[redacted]')
}

function parseModels(body: Buffer, provider: string): readonly BackendModel[] {
  const list = parseJson(body.toString())
  // Ollama sends null for an empty list.
  const data = isJsonObject(list) && list.data === null ? [] : isJsonObject(list) && list.data
  if (!Array.isArray(data)) {
    throw new BackendFailure('protocol', 'The provider did not return a model list.')
  }
  return listObjects(data).flatMap((model) =>
    typeof model.id === 'string' && model.id !== '' ? [toModel(model, model.id, provider)] : [],
  )
}

function toModel(listed: JsonObject, id: string, provider: string): BackendModel {
  const { created, owned_by: ownedBy, meta } = listed
  // In order: OpenRouter and LiteLLM, vLLM, Groq, llama-server (configured, trained).
  const lengths = [listed.context_length, listed.max_model_len, listed.context_window]
  const own = isJsonObject(meta) ? [meta.n_ctx, meta.n_ctx_train] : []
  const inputs = isJsonObject(listed.architecture) ? listed.architecture.input_modalities : undefined
  const contextLength = [...lengths, ...own].find(isCount)
  return {
    id,
    created: isCount(created) ? created : 0,
    ownedBy: typeof ownedBy === 'string' ? ownedBy : provider,
    ...(contextLength !== undefined && { contextLength }),
    ...(id.endsWith(newestTag) && { aliases: [id.slice(0, -newestTag.length)] }),
    chats: !embeddingNames.test(id),
    ...(Array.isArray(inputs) && { inputs: inputs.filter((input) => typeof input === 'string') }),
  }
}

/** Ollama adds this tag to models pulled without a tag; requests may omit it. */
const newestTag = ':latest'

/** Matches embedding models, including Ollama models without `embed` in their name. */
const embeddingNames = /embed|(^|\/)(all-minilm|bge-|gte-|e5-|paraphrase-multilingual)/i

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}
