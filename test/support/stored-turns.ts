/** Provides settings and agents for servers that store conversations, and reads streams of stored turns. */
import { createHash } from 'node:crypto'
import { request as httpRequest } from 'node:http'
import { PROVIDER_KEY } from './chat-harness.ts'
import { callServer } from './process.ts'
import type { Upstream } from './start-upstream.ts'

/** Returns the settings of servers with this model provider and without limits on requests and streams. */
export function storingEnv({ url }: Upstream): Record<string, string> {
  return {
    PARLEY_BACKEND: 'gateway',
    PARLEY_GATEWAY_URL: url,
    PARLEY_GATEWAY_API_KEY: PROVIDER_KEY,
    PARLEY_RATE_LIMIT_PARENT: '0',
    PARLEY_RATE_LIMIT_AGENT: '0',
    PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0',
    PARLEY_MAX_STREAMS_PARENT: '0',
    PARLEY_MAX_STREAMS_AGENT: '0',
    PARLEY_MAX_STREAMS_ADDRESS: '0',
  }
}

export interface StoringAgent {
  readonly id: string
  readonly key: string
}

/** Creates an agent that stores its conversations, and continues turns whose client disconnects. */
export async function createStoringAgent(url: string, parentKey: string, more = {}): Promise<StoringAgent> {
  const definition = {
    name: 'A',
    model: 'up-chat',
    instructions: 'B',
    conversations: { keep: '30d', onDisconnect: 'continue' },
    ...more,
  }
  const agent = { yaml: JSON.stringify(definition) }
  const { status, body } = await callServer(url, 'POST', '/v1/agents', parentKey, agent)
  if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
  return { id: body.agent_id, key: body.agent_key }
}

export interface StreamRequest {
  readonly method?: 'GET' | 'POST'
  readonly path: string
  readonly key: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
}

export interface StreamAnswer {
  /** Undefined if the connection ended before the head. */
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** Sends a request on its own connection; returns the text that arrives until the stream ends or breaks. */
export function readStream(
  url: string,
  { method = 'POST', path, key, headers, body }: StreamRequest,
  onText?: (text: string, stop: () => void) => void,
): Promise<StreamAnswer> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = []
    let head: Pick<StreamAnswer, 'status' | 'headers'> = { status: undefined, headers: {} }
    const sent = httpRequest(url + path, {
      method,
      agent: false,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
    })
    const finish = () => resolve({ ...head, text: Buffer.concat(pieces).toString() })
    sent.on('error', finish)
    sent.on('response', (response) => {
      head = { status: response.statusCode, headers: response.headers }
      response.on('data', (bytes: Buffer) => {
        pieces.push(bytes)
        onText?.(Buffer.concat(pieces).toString(), () => sent.destroy())
      })
      response.on('error', finish)
      response.on('close', finish)
    })
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** Returns the complete events of a stream that may have been cut. */
export function completeEvents(text: string): string[] {
  return text.split('\n\n').slice(0, -1)
}

/** Returns the value of an event's field, or undefined without one. */
function fieldOf(event: string, name: string): string | undefined {
  return new RegExp(`^${name}: (.*)$`, 'm').exec(event)?.[1]
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into events of every shape
export function dataOf(event: string): any {
  const data = fieldOf(event, 'data')
  return data === undefined || data === '[DONE]' ? undefined : JSON.parse(data)
}

/** Builds requests to one API, and reads the ids, texts and ends in its streams. */
export interface StreamApi {
  readonly path: string
  body(text: string): object
  idOf(event: string): string | undefined
  textOf(event: string): string
  isLast(event: string): boolean
}

export const chatApi: StreamApi = {
  path: '/v1/chat/completions',
  body: (content) => ({ messages: [{ role: 'user', content }], stream: true }),
  idOf: (event) => fieldOf(event, 'id'),
  textOf: (event) => dataOf(event)?.choices?.[0]?.delta?.content ?? '',
  isLast: (event) => event.endsWith('data: [DONE]'),
}

export const responsesApi: StreamApi = {
  path: '/v1/responses',
  body: (input) => ({ input, stream: true }),
  idOf: (event) => String(dataOf(event)?.sequence_number),
  textOf: (event) => {
    const data = dataOf(event)
    return data?.type === 'response.output_text.delta' ? data.delta : ''
  },
  isLast: (event) => /^event: response\.(completed|incomplete|failed)$/m.test(event),
}

/** Returns the ids of a stream's events, and the digest and the length of its text. */
export function summarize(api: StreamApi, events: readonly string[]) {
  const text = events.map((event) => api.textOf(event)).join('')
  return {
    ids: events.map((event) => api.idOf(event)),
    digest: createHash('sha256').update(text).digest('hex'),
    length: text.length,
  }
}

/** Returns the text of a response's messages. */
export function responseText(response: {
  readonly output: readonly { readonly content?: readonly { readonly text?: string }[] }[]
}): string {
  return response.output.flatMap(({ content }) => (content ?? []).map(({ text }) => text ?? '')).join('')
}

/** Returns the text that the scripted provider sends for `{{up:chunks N}}`. */
export function chunksText(count: number): string {
  return Array.from({ length: count }, (_, index) => `w${index} `).join('')
}
