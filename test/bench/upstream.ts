/** Runs the benchmark's fake model provider, which sends fixed responses and streams. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The settings for streams, which `POST /plan` replaces. */
export interface StreamPlan {
  /** The number of content chunks in a stream. */
  readonly chunks: number
  /** The number of content chunks in one write if `intervalMs` is 0. */
  readonly chunksPerWrite: number
  /** Milliseconds between two content chunks of a stream; 0 = as fast as possible. */
  readonly intervalMs: number
}

const created = 1_760_000_000

function chunkEvent(choices: readonly unknown[], usage?: unknown): string {
  const id = 'chatcmpl-bench5Zk2TqWm8LrYx0VbNc4'
  const chunk = { id, object: 'chat.completion.chunk', created, model: 'bench-model', choices, usage }
  return `data: ${JSON.stringify(chunk)}\n\n`
}

const usage = { prompt_tokens: 128, completion_tokens: 200, total_tokens: 328 }
const roleEvent = Buffer.from(
  chunkEvent([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]),
)
const wordEvent = Buffer.from(chunkEvent([{ index: 0, delta: { content: ' word' }, finish_reason: null }]))
const finishEvent = Buffer.from(chunkEvent([{ index: 0, delta: {}, finish_reason: 'stop' }]))
const usageEvent = Buffer.from(chunkEvent([], usage))
const doneEvent = Buffer.from('data: [DONE]\n\n')

const completion = Buffer.from(
  JSON.stringify({
    id: 'chatcmpl-bench5Zk2TqWm8LrYx0VbNc4',
    object: 'chat.completion',
    created,
    model: 'bench-model',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'A plain answer of some length. '.repeat(24) },
        finish_reason: 'stop',
      },
    ],
    usage,
  }),
)

const modelIds = ['bench-model', ...Array.from({ length: 49 }, (_, index) => `bench-model-${index + 2}`)]
const models = Buffer.from(
  JSON.stringify({
    object: 'list',
    data: modelIds.map((id) => ({ id, object: 'model', created, owned_by: 'bench' })),
  }),
)

const vectors = Array.from({ length: 64 }, (_, input) =>
  Float32Array.from({ length: 1536 }, (_, place) => Math.sin(1536 * input + place) / 20),
)

function embeddingList(toEmbedding: (vector: Float32Array) => unknown): Buffer {
  const data = vectors.map((vector, index) => ({
    object: 'embedding',
    index,
    embedding: toEmbedding(vector),
  }))
  const usage = { prompt_tokens: 640, total_tokens: 640 }
  return Buffer.from(JSON.stringify({ object: 'list', data, model: 'bench-model', usage }))
}

const embeddings = {
  float: embeddingList((vector) => [...vector]),
  base64: embeddingList((vector) => Buffer.from(vector.buffer).toString('base64')),
}

/** Drives all streams with a single timer, and spreads them evenly over the interval. */
class Pacer {
  private readonly slots: Set<() => void>[]
  private readonly timer: NodeJS.Timeout
  private readonly startedMs = performance.now()
  private tick = 0
  private joined = 0

  constructor(intervalMs: number) {
    this.slots = Array.from({ length: intervalMs }, () => new Set())
    this.timer = setInterval(() => this.catchUp(), 1)
  }

  /** Calls `step` once per interval until the returned function is called. */
  join(step: () => void): () => void {
    // Multiplying by a prime number spreads consecutive streams over the whole interval.
    const slot = this.slots[(this.joined++ * 7919) % this.slots.length]
    slot?.add(step)
    return () => slot?.delete(step)
  }

  stop(): void {
    clearInterval(this.timer)
  }

  private catchUp(): void {
    const due = Math.floor(performance.now() - this.startedMs)
    for (; this.tick < due; this.tick++) {
      for (const step of this.slots[this.tick % this.slots.length] ?? []) step()
    }
  }
}

let plan: StreamPlan = { chunks: 1, chunksPerWrite: 1, intervalMs: 0 }
let pacer: Pacer | undefined
let wordBatch = wordEvent

function setPlan(next: StreamPlan): void {
  plan = next
  wordBatch = Buffer.concat(Array.from({ length: plan.chunksPerWrite }, () => wordEvent))
  pacer?.stop()
  pacer = plan.intervalMs > 0 ? new Pacer(plan.intervalMs) : undefined
}

function endEvents(withUsage: boolean): Buffer {
  return Buffer.concat(withUsage ? [finishEvent, usageEvent, doneEvent] : [finishEvent, doneEvent])
}

function streamPaced(pacer: Pacer, response: ServerResponse, withUsage: boolean): void {
  let left = plan.chunks
  response.write(roleEvent)
  const leave = pacer.join(() => {
    if (left-- > 0) {
      response.write(wordEvent)
      return
    }
    leave()
    response.end(endEvents(withUsage))
  })
  response.once('close', leave)
}

async function streamAtFullSpeed(response: ServerResponse, withUsage: boolean): Promise<void> {
  let left = plan.chunks
  let head: Buffer | undefined = roleEvent
  while (left > 0 && !response.destroyed) {
    const size = Math.min(left, plan.chunksPerWrite)
    const words = size === plan.chunksPerWrite ? wordBatch : wordBatch.subarray(0, size * wordEvent.length)
    const isTaken = response.write(head ? Buffer.concat([head, words]) : words)
    head = undefined
    left -= size
    if (isTaken) await new Promise((resolve) => setImmediate(resolve))
    else await Promise.race([once(response, 'drain'), once(response, 'close')])
  }
  response.end(endEvents(withUsage))
}

function answerJson(response: ServerResponse, json: Buffer): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': json.length })
  response.end(json)
}

function answerChat(body: string, response: ServerResponse): void {
  if (!body.includes('"stream":true')) {
    answerJson(response, completion)
    return
  }
  const withUsage = body.includes('"include_usage":true')
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
  if (pacer) streamPaced(pacer, response, withUsage)
  else void streamAtFullSpeed(response, withUsage)
}

function answer(path: string, body: string, response: ServerResponse): void {
  if (path === '/v1/chat/completions') {
    answerChat(body, response)
  } else if (path === '/v1/embeddings') {
    answerJson(response, embeddings[body.includes('"base64"') ? 'base64' : 'float'])
  } else if (path === '/v1/models') {
    answerJson(response, models)
  } else {
    if (path === '/plan') setPlan(JSON.parse(body) as StreamPlan)
    response.writeHead(path === '/plan' ? 204 : 404).end()
  }
}

function readThenAnswer(request: IncomingMessage, response: ServerResponse): void {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => answer(request.url ?? '', Buffer.concat(parts).toString(), response))
}

if (import.meta.main) {
  const server = createServer({ keepAliveTimeout: 120_000 }, readThenAnswer)
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
    process.stdout.write(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
  })
}
