/** Starts a model provider that respects token limits and counts the tokens that it would charge for. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

export type ChatBody = Record<string, unknown> & {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
  readonly stream?: boolean
  readonly n?: number
  readonly max_tokens?: number
  readonly max_completion_tokens?: number
}

/** The provider's behavior for one request. */
export interface Plan {
  /** Output tokens that the model wants to produce; the request's limit can reduce them. */
  readonly tokens?: number
  /** A tool to call instead of answering. */
  readonly tool?: string
  /** An HTTP status other than 200. */
  readonly status?: number
  /** Closes the connection after the model has produced its tokens, instead of sending them. */
  readonly isLost?: boolean
  /** Closes a stream's connection after this many tokens. */
  readonly cutAfter?: number
  /** Reports the usage of the first token with the first event of a stream, and none at its end. */
  readonly isUsageEarly?: boolean
  /** The usage to report. By default, the charged tokens; if set to undefined, none. */
  readonly usage?: unknown
}

export interface MeteredProvider {
  readonly url: string
  readonly requests: ChatBody[]
  /** The number of tokens that all requests have cost so far. */
  charged: number
}

/** Calls `plan` for each request before it charges tokens. */
export async function startMeteredProvider(
  plan: (body: ChatBody) => Plan | Promise<Plan>,
): Promise<MeteredProvider> {
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const provider: MeteredProvider = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests: [],
    charged: 0,
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'GET') return sendJson(response, 200, { object: 'list', data: models })
    const body: ChatBody = JSON.parse(await text(request))
    provider.requests.push(body)
    const planned = await plan(body)
    if (planned.status !== undefined) return sendJson(response, planned.status, { error: { message: 'no' } })
    const most = body.max_completion_tokens ?? body.max_tokens ?? Infinity
    const tokens = Math.min(planned.tool === undefined ? (planned.tokens ?? 5) : 10, most)
    const isFinished = tokens < most
    const usage = { prompt_tokens: countInput(body), completion_tokens: tokens * (body.n ?? 1) }
    provider.charged += usage.prompt_tokens + usage.completion_tokens
    if (planned.isLost === true) return void response.destroy()
    const reported = 'usage' in planned ? planned.usage : { ...usage, total_tokens: 0 }
    const reply = { tokens, reported, isFinished, planned }
    if (body.stream === true) sendStream(response, body, reply)
    else sendJson(response, 200, toCompletion(body, reply))
  }
  return provider
}

interface Reply {
  readonly tokens: number
  readonly reported: unknown
  readonly isFinished: boolean
  readonly planned: Plan
}

const models = [
  { id: 'metered', object: 'model', created: 1, owned_by: 'test' },
  { id: 'spare', object: 'model', created: 1, owned_by: 'test' },
  { id: 'thrifty', object: 'model', created: 1, owned_by: 'test' },
]

/** Counts one token per four characters, and 1,445 per image, which OpenAI charges for a large image. */
function countInput({ messages, tools }: ChatBody): number {
  const images = messages.flatMap(({ content }) => (Array.isArray(content) ? content : [])).filter(isImage)
  const texts = JSON.stringify([messages, tools ?? []], (key, value) => (key === 'image_url' ? 0 : value))
  return Math.ceil(texts.length / 4) + 1_445 * images.length
}

function isImage(part: { readonly type: string }): boolean {
  return part.type === 'image_url'
}

function toCall({ tool }: Plan) {
  return { id: 'call_1', type: 'function', function: { name: tool, arguments: '{}' } }
}

function toCompletion(body: ChatBody, { tokens, reported, isFinished, planned }: Reply): object {
  const message =
    planned.tool === undefined
      ? { role: 'assistant', content: 'word '.repeat(tokens) }
      : { role: 'assistant', content: null, tool_calls: [toCall(planned)] }
  const finish_reason = planned.tool === undefined ? (isFinished ? 'stop' : 'length') : 'tool_calls'
  return {
    ...{ id: 'c', object: 'chat.completion', created: 1, model: body.model },
    choices: Array.from({ length: body.n ?? 1 }, (_, index) => ({ index, message, finish_reason })),
    ...(reported === undefined ? {} : { usage: reported }),
  }
}

const earlyUsage = { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 }

function sendStream(response: ServerResponse, body: ChatBody, reply: Reply): void {
  const { tokens, reported, isFinished, planned } = reply
  const head = { id: 'c', object: 'chat.completion.chunk', created: 1, model: body.model }
  const send = (fields: object) => response.write(`data: ${JSON.stringify({ ...head, ...fields })}\n\n`)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (let index = 0; index < (body.n ?? 1); index++) {
    const pieces =
      planned.tool === undefined
        ? Array.from({ length: Math.min(tokens, planned.cutAfter ?? Infinity) }, () => ({ content: 'word ' }))
        : [{ tool_calls: [{ index: 0, ...toCall(planned) }] }]
    for (const [at, piece] of pieces.entries())
      send({
        choices: [{ index, delta: at === 0 ? { role: 'assistant', ...piece } : piece }],
        ...(planned.isUsageEarly === true && at === 0 && { usage: earlyUsage }),
      })
    if (planned.cutAfter !== undefined) return void setImmediate(() => response.destroy())
    const finish_reason = planned.tool === undefined ? (isFinished ? 'stop' : 'length') : 'tool_calls'
    send({ choices: [{ index, delta: {}, finish_reason }] })
  }
  if (reported !== undefined && planned.isUsageEarly !== true) send({ choices: [], usage: reported })
  response.end('data: [DONE]\n\n')
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
