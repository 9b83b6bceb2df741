/** The backend that is a runner of models on this machine, Ollama or llama-server: a gateway, and what those two do otherwise. */
import { basename } from 'node:path'
import { isJsonObject } from '../lib/formats/json.ts'
import { isCallersMistake } from './failures.ts'
import { createGatewayBackend, type GatewayOptions, type SaidRefusal } from './gateway.ts'
import { BackendFailure, type BackendModel, type BackendRequest, type ChatBackend } from './provider.ts'

/** What a runner backend needs to know: what a gateway does, but for the key. */
export type RunnerOptions = Omit<GatewayOptions, 'apiKey' | 'mendRefusal'>

/** Makes a backend of a local runner. Decision: 2 (`PARLEY_LOCAL_URL`), 7. */
export function createRunnerBackend(options: RunnerOptions): ChatBackend {
  const gateway = createGatewayBackend({ ...options, mendRefusal })
  const { origin } = new URL(options.url)
  const naming = <Answer>(answer: Promise<Answer>) =>
    answer.catch((thrown: unknown) => {
      throw isNobodyThere(thrown) ? nobodyListens(origin, thrown) : thrown
    })
  return {
    name: gateway.name,
    address: gateway.address,
    complete: (request) => naming(gateway.complete(toRunnerRequest(request))),
    stream: (request) => naming(gateway.stream(toRunnerRequest(request))),
    embed: (request) => naming(gateway.embed(request)),
    listModels: async (signal) => (await naming(gateway.listModels(signal))).map(withoutFolders),
    close: () => gateway.close(),
  }
}

/**
 * Says the same in the words both know: Ollama does not know `max_completion_tokens`, which is what newer clients bound an answer
 * with, and hands `developer` to templates that leave out whom they do not know.
 */
function toRunnerRequest({ body, ...call }: BackendRequest): BackendRequest {
  const { max_tokens = null, max_completion_tokens = null, messages } = body
  const limit = max_tokens ?? max_completion_tokens
  return {
    body: {
      ...body,
      ...(limit !== null && { max_tokens: limit }),
      ...(Array.isArray(messages) && { messages: messages.map(withKnownRole) }),
    },
    ...call,
  }
}

function withKnownRole(message: unknown): unknown {
  return isJsonObject(message) && message.role === 'developer' ? { ...message, role: 'system' } : message
}

/** Ollama's words, with 400 or 500. */
const tooLongForEmbedding = 'input length exceeds the context length'

function mendRefusal({ status, said }: SaidRefusal): SaidRefusal {
  if (said?.message.includes(tooLongForEmbedding)) {
    return { status: 400, said: { ...said, code: 'context_length_exceeded', param: 'input' } }
  }
  // Of a model that cannot embed, which another attempt will not teach it.
  if (status === 501) return { status: 400, said }
  if (status === 503 && said !== undefined) {
    return { status, said: { message: `The model runner is not ready: ${said.message}` } }
  }
  // Ollama refuses so a model that was there when it listed them.
  const isModelGone = status === 404 && said?.message.includes('model')
  return isModelGone || isCallersMistake({ status }) ? { status, said } : { status, said: undefined }
}

/** llama-server calls a model by the path it was started with, and takes any name for it: nobody needs to see folders. */
function withoutFolders(model: BackendModel): BackendModel {
  const { id } = model
  return /^(\.{0,2}[\\/]|~|[a-z]:\\).*\.gguf$/i.test(id)
    ? { ...model, id: basename(id.replaceAll('\\', '/')).replace(/\.gguf$/i, '') }
    : model
}

function isNobodyThere(thrown: unknown): boolean {
  if (!(thrown instanceof BackendFailure) || thrown.kind !== 'unreachable') return false
  return (thrown.cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED'
}

/** Callers are not told the address. */
function nobodyListens(origin: string, cause: unknown): BackendFailure {
  return new BackendFailure(
    'unreachable',
    `Nothing listens at ${origin}; start Ollama (\`ollama serve\`) or llama-server there`,
    { said: { message: 'Nothing listens where the local model runner should be.' }, cause },
  )
}
