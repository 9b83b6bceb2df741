/** Starts an HTTP server that records webhook deliveries, and creates webhooks that send to it. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { onTestFinished, vi } from 'vitest'
import type { TestApp } from './app.ts'

/** Lets tests use receivers on this machine. */
export const allowLoopback = { PARLEY_WEBHOOK_ALLOW: '127.0.0.1' }

export interface Received {
  readonly id: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  readonly body: any
}

export interface Receiver {
  readonly url: string
  readonly received: Received[]
  /** The status of responses that neither `answerNext` nor `answerByPath` sets; 204 by default. */
  status: number
  /** Sets the responses to the next deliveries, in order. */
  answerNext(...answers: readonly ((response: ServerResponse) => void)[]): void
  /** Sets the status of all responses to requests for a path. */
  answerByPath(statuses: Readonly<Record<string, number>>): void
}

export const withStatus =
  (status: number, headers: Readonly<Record<string, string>> = {}) =>
  (response: ServerResponse) =>
    void response.writeHead(status, headers).end('no')

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = []
  const answers: ((response: ServerResponse) => void)[] = []
  let byPath: Readonly<Record<string, number>> = {}
  const receiver: Receiver = {
    url: '',
    received,
    status: 204,
    answerNext: (...next) => void answers.push(...next),
    answerByPath: (statuses) => {
      byPath = statuses
    },
  }
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece)
    const text = Buffer.concat(pieces).toString()
    const { headers } = request
    received.push({ id: String(headers['webhook-id']), headers, text, body: JSON.parse(text) })
    const answer = answers.shift() ?? withStatus(byPath[request.url ?? ''] ?? receiver.status)
    answer(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return Object.assign(receiver, { url: `http://127.0.0.1:${port}/hook` })
}

export async function createWebhook(app: TestApp, body: object, key?: string) {
  const answer = await app.call('POST', '/v1/webhooks', { body, ...(key !== undefined && { key }) })
  if (answer.status !== 201) throw new Error(`the webhook was not created: ${answer.text}`)
  return answer.body
}

/** Attempts all deliveries that are due now. */
export function deliverDue({ service }: TestApp): Promise<void> {
  return service.deps.webhooks.deliverer.deliverDue()
}

/** Verifies a signature with the reference library, with the clock set to the time of the signature. */
export function verify(secret: string, { text, headers }: Received): unknown {
  vi.useFakeTimers({ toFake: ['Date'], now: Number(headers['webhook-timestamp']) * 1000 })
  try {
    return new Webhook(secret).verify(text, headers as Record<string, string>)
  } finally {
    vi.useRealTimers()
  }
}
