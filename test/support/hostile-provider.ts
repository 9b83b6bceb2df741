/** Starts a model provider that ignores token limits, and records what it has produced. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import type { ChatBody } from './metered-provider.ts'

/** The provider's answer to one request. */
export interface HostilePlan {
  /** The text of each event. */
  readonly piece?: string
  /** Number of events. */
  readonly pieces?: number
  /** The delta of each event; by default, `piece` as content. */
  readonly delta?: object
  /** The reported usage; by default none. */
  readonly usage?: object
  readonly finishReason?: string
}

export interface HostileProvider {
  readonly url: string
  readonly requests: ChatBody[]
  /** Number of events that the last answer had when its connection closed, or when it was complete. */
  events: number
  /** Whether the connection of the last streamed answer has closed. */
  isClosed: boolean
}

export async function startHostileProvider(plan: (body: ChatBody) => HostilePlan): Promise<HostileProvider> {
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const provider: HostileProvider = {
    url: `http://127.0.0.1:${port}/v1`,
    requests: [],
    events: 0,
    isClosed: false,
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'GET') return sendJson(response, { object: 'list', data: models })
    const body: ChatBody = JSON.parse(await text(request))
    provider.requests.push(body)
    provider.events = 0
    provider.isClosed = false
    response.once('close', () => {
      provider.isClosed = true
    })
    if (body.stream === true) return sendStream(response, body, plan(body))
    const { piece = 'word ', pieces = 1, usage } = plan(body)
    if (request.url?.endsWith('/embeddings')) {
      const data = [{ object: 'embedding', index: 0, embedding: [0.5] }]
      return sendJson(response, { object: 'list', data, model: body.model, usage })
    }
    const message = { role: 'assistant', content: piece.repeat(pieces) }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    sendJson(response, { id: 'c', object: 'chat.completion', created: 1, model: body.model, choices, usage })
  }

  /** Lets the reader act between events, so that they can be counted. */
  async function sendStream(response: ServerResponse, body: ChatBody, planned: HostilePlan): Promise<void> {
    const { piece = 'word ', pieces = 1, delta = { content: piece }, usage, finishReason = 'stop' } = planned
    const head = { id: 'c', object: 'chat.completion.chunk', created: 1, model: body.model }
    const send = (fields: object) => response.write(`data: ${JSON.stringify({ ...head, ...fields })}\n\n`)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let sent = 0; sent < pieces && !response.destroyed; sent++) {
      send({ choices: [{ index: 0, delta, finish_reason: null }] })
      provider.events += 1
      await setImmediate()
    }
    send({ choices: [{ index: 0, delta: {}, finish_reason: finishReason }] })
    if (usage !== undefined) send({ choices: [], usage })
    response.end('data: [DONE]\n\n')
  }
  return provider
}

const models = [{ id: 'hostile', object: 'model', created: 1, owned_by: 'test' }]

function sendJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
