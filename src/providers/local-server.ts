/** Calls a local model server, and adapts requests and errors to Ollama and llama-server. */
import { basename } from 'node:path'
import { isJsonObject } from '../lib/formats/json.ts'
import { isCallersMistake } from './failures.ts'
import { createGatewayBackend, type GatewayOptions, type SaidRejection } from './gateway.ts'
import { BackendFailure, type BackendModel, type BackendRequest, type ChatBackend } from './provider.ts'

export type RunnerOptions = Omit<GatewayOptions, 'normalizeRejection'>

export function createRunnerBackend(options: RunnerOptions): ChatBackend {
  const gateway = createGatewayBackend({ ...options, normalizeRejection })
  const { origin } = new URL(options.url)
  const naming = <Answer>(answer: Promise<Answer>) =>
    answer.catch((thrown: unknown) => {
      throw isConnectionRefused(thrown) ? serverNotRunning(origin, thrown) : thrown
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
 * Adapts a request to Ollama, which ignores `max_completion_tokens` and drops messages with the role
 * `developer`.
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

const tooLongForEmbedding = 'input length exceeds the context length'

function normalizeRejection({ status, said }: SaidRejection): SaidRejection {
  if (said?.message.includes(tooLongForEmbedding)) {
    return { status: 400, said: { ...said, code: 'context_length_exceeded', param: 'input' } }
  }
  // A 501 means that the model cannot embed, so a retry would fail too.
  if (status === 501) return { status: 400, said }
  if (status === 503 && said !== undefined) {
    return { status, said: { message: `The local model server is not ready: ${said.message}` } }
  }
  // Ollama returns this for a model that was removed after it was listed.
  const isModelGone = status === 404 && said?.message.includes('model')
  return isModelGone || isCallersMistake({ status }) ? { status, said } : { status, said: undefined }
}

/**
 * Shortens the path of a model file to its name without `.gguf`, because llama-server lists models by path
 * but accepts any name.
 */
function withoutFolders(model: BackendModel): BackendModel {
  const { id } = model
  return /^(\.{0,2}[\\/]|~|[a-z]:\\).*\.gguf$/i.test(id)
    ? { ...model, id: basename(id.replaceAll('\\', '/')).replace(/\.gguf$/i, '') }
    : model
}

function isConnectionRefused(thrown: unknown): boolean {
  if (!(thrown instanceof BackendFailure) || thrown.kind !== 'unreachable') return false
  return (thrown.cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED'
}

function serverNotRunning(origin: string, cause: unknown): BackendFailure {
  return new BackendFailure(
    'unreachable',
    `No model server is listening at ${origin}; start Ollama (\`ollama serve\`) or llama-server there`,
    { said: { message: 'The local model server is not running.' }, cause },
  )
}
