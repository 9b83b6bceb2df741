/** Calls another server's chat API, if the operator has allowed its origin. */
import { createParser } from 'eventsource-parser'
import type { ChatChunk } from '../../../src/providers/chat-api.ts'
import { isRecord } from '../../values.ts'
import { ChatFailure } from '../failure.ts'
import { pacedFetch } from './paced-fetch.ts'
import { type ErrorResponse, toFailure } from './to-failure.ts'
import type { ChatBody, Transport } from './transport.ts'

interface RestOptions {
  readonly endpoint: string
  readonly key: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly takesSystem: boolean
}

/** Creates a transport to one endpoint; sends only the given credentials. */
export function createRestTransport({ endpoint, key, headers, takesSystem }: RestOptions): Transport {
  async function ask(body: ChatBody, signal: AbortSignal): Promise<Response> {
    const response = await pacedFetch(endpoint, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'text/event-stream',
        ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
        ...headers,
      },
      body: JSON.stringify({ ...body, stream: true }),
      signal,
      credentials: 'omit',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
    }).catch((cause) => {
      throw new ChatFailure(toFailure(undefined, false), cause)
    })
    if (!response.ok) throw new ChatFailure(toFailure(await readErrorResponse(response), false))
    return response
  }

  return {
    takesSystem,
    async *stream(body, signal) {
      const response = await ask(body, signal)
      try {
        yield* readChunks(response)
      } catch (thrown) {
        if (thrown instanceof ChatFailure) throw thrown
        throw new ChatFailure(toFailure(undefined, true), thrown)
      }
    },
    readAgent: async () => undefined,
  }
}

async function* readChunks(response: Response): AsyncGenerator<readonly ChatChunk[]> {
  let chunks: ChatChunk[] = []
  let isEnded = false
  const parser = createParser({
    onEvent({ data }) {
      if (data === '[DONE]') isEnded = true
      else chunks.push(toChunk(data))
    },
  })
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(
    new TextDecoderStream() as TransformStream<Uint8Array, string>,
  )
  for await (const text of reader) {
    parser.feed(text)
    if (chunks.length > 0) yield chunks
    chunks = []
    if (isEnded) return
  }
}

/** @throws ChatFailure for an error event or an invalid chunk. */
function toChunk(data: string): ChatChunk {
  const chunk: unknown = JSON.parse(data)
  if (!isRecord(chunk) || chunk.error !== undefined) throw new ChatFailure({ code: 'interrupted' })
  const choices = Array.isArray(chunk.choices) ? chunk.choices : []
  return { ...chunk, choices: choices.filter(({ delta }) => isRecord(delta)) } as ChatChunk
}

async function readErrorResponse(response: Response): Promise<ErrorResponse> {
  const body: unknown = await response.json().catch(() => undefined)
  const error = isRecord(body) && isRecord(body.error) ? body.error : {}
  const seconds = Number(response.headers.get('Retry-After') ?? Number.NaN)
  return {
    status: response.status,
    code: typeof error.code === 'string' ? error.code : '',
    retryAfterSeconds: Number.isFinite(seconds) ? seconds : undefined,
    requestId: response.headers.get('X-Request-Id') ?? undefined,
  }
}
