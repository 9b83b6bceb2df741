/** Chats, streams, uploads, requests statuses and creates agents on replicas, and checks the responses. */
import { randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { GREETER, readEvents } from './app.ts'
import { callServer } from './process.ts'
import { createUpload, patchUpload, readOffset, readStatus, type Target } from './uploads.ts'

/** A request's result: `failed` for a missing or 5xx response, `wrong` for another unexpected one. */
export interface Outcome {
  readonly kind: string
  readonly beganAtMs: number
  readonly result: 'ok' | 'failed' | 'wrong'
  readonly detail: string
}

export interface Uploaded {
  readonly id: string
  readonly bytes: Buffer
}

export interface Load {
  readonly outcomes: readonly Outcome[]
  readonly uploads: readonly Uploaded[]
  /** The ids of the created agents. */
  readonly agents: readonly string[]
  /** Stops the load; resolves when all requests and uploads have completed. */
  stop(): Promise<void>
}

const PARTS = 4
const PART_BYTES = 192 * 1024

/** Thrown for an unexpected response that the failure of a replica cannot explain. */
class WrongAnswer extends Error {}

function assertRight(isRight: boolean, what: string): void {
  if (!isRight) throw new WrongAnswer(what)
}

/** Throws an Error for an unexpected 5xx status, and a WrongAnswer for another unexpected status. */
function assertStatus(status: number, wanted: number): void {
  if (status === wanted) return
  const message = `answered ${status}`
  throw status >= 500 ? new Error(message) : new WrongAnswer(message)
}

/** Starts to send requests; `known` is a ready artifact whose status they request. */
export function startLoad(target: Target, known: Uploaded): Load {
  const [outcomes, uploads, agents]: [Outcome[], Uploaded[], string[]] = [[], [], []]
  let isOver = false

  /** Sends one request and records its outcome; returns whether it succeeded. */
  async function observe(kind: string, run: () => Promise<void>): Promise<boolean> {
    const beganAtMs = performance.now()
    const note = (result: Outcome['result'], detail: string) =>
      outcomes.push({ kind, beganAtMs, result, detail })
    try {
      await run()
      note('ok', '')
      return true
    } catch (error) {
      note(error instanceof WrongAnswer ? 'wrong' : 'failed', String(error))
      return false
    }
  }

  async function repeat(kind: string, run: () => Promise<void>): Promise<void> {
    while (!isOver) {
      await observe(kind, run)
      await wait(20)
    }
  }

  const text = 'one two three four five'
  const say = (content: string, stream: boolean) => ({
    model: 'mock',
    stream,
    messages: [{ role: 'user', content }],
  })

  async function chat(): Promise<void> {
    const { status, body } = await callServer(
      target.url,
      'POST',
      '/v1/chat/completions',
      target.key,
      say(text, false),
    )
    assertStatus(status, 200)
    assertRight(body.choices[0].message.content === `You said: ${text}`, JSON.stringify(body))
  }

  async function stream(): Promise<void> {
    const response = await fetch(`${target.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${target.key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(say(`[[delay:20]] ${text}`, true)),
    })
    const whole = await response.text()
    assertStatus(response.status, 200)
    const { events, isDone } = readEvents(whole)
    if (!isDone && events.at(-1)?.error !== undefined) throw new Error(whole)
    const said = events.map((event) => event.choices?.[0]?.delta?.content ?? '').join('')
    assertRight(isDone && said.endsWith(text), whole)
  }

  async function status(): Promise<void> {
    const { state, size } = await readStatus(target, known.id).catch((error) => {
      // The load balancer's error responses have no body.
      throw new Error(String(error))
    })
    if (state === undefined) throw new Error('no status')
    assertRight(state === 'ready' && (size ?? known.bytes.length) === known.bytes.length, `${state} ${size}`)
  }

  async function createAgent(): Promise<void> {
    const body = { yaml: GREETER }
    const answer = await callServer(target.url, 'POST', '/v1/agents', target.key, body)
    assertStatus(answer.status, 201)
    agents.push(answer.body.agent_id)
  }

  /** Uploads with unlimited retries, and checks that the server retains all acknowledged bytes. */
  async function upload(): Promise<void> {
    const bytes = randomBytes(PARTS * PART_BYTES)
    let begun: Awaited<ReturnType<typeof createUpload>> | undefined
    while (begun === undefined) {
      await observe('upload', async () => {
        begun = await createUpload(target, { size: bytes.length, metadata: { filename: 'data.bin' } })
      })
    }
    const going = begun
    let acknowledged = 0
    while (acknowledged < bytes.length) {
      const isSent = await observe('upload', async () => {
        const part = bytes.subarray(acknowledged, acknowledged + PART_BYTES)
        const { status, headers } = await patchUpload(target, going, acknowledged, part)
        assertStatus(status, 204)
        acknowledged = Number(headers.get('upload-offset'))
      })
      if (isSent) continue
      await observe('upload', async () => {
        const offset = await readOffset(target, going)
        assertRight(
          offset >= acknowledged,
          `${acknowledged} bytes were acknowledged, but the offset is ${offset}`,
        )
        acknowledged = offset
      })
    }
    uploads.push({ id: going.id, bytes })
  }

  async function keepUploading(): Promise<void> {
    while (!isOver) await upload()
  }

  const running = [
    ...[repeat('chat', chat), repeat('stream', stream), repeat('stream', stream)],
    ...[repeat('status', status), repeat('agent', createAgent), keepUploading(), keepUploading()],
  ]
  return {
    outcomes,
    uploads,
    agents,
    async stop() {
      isOver = true
      await Promise.all(running)
    },
  }
}
