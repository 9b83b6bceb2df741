/** Implements the requests that the soak test's clients make, and checks the responses. */
import { setTimeout as wait } from 'node:timers/promises'
import { BenchFailure } from '../bench/connection.ts'
import { JsonSink } from '../bench/load.ts'
import { post } from '../bench/requests.ts'
import { toHead } from '../bench/transfers.ts'
import {
  callUpload,
  createUpload,
  patchUpload,
  readArtifact,
  readOffset,
  uploadWhole,
} from '../support/uploads.ts'
import { BytesSink, TextSink } from './sinks.ts'
import { agentYaml, removeArtifact, type World } from './world.ts'

/** An action, and how often it occurs in a hundred actions. */
export interface Action {
  readonly share: number
  run(world: World): Promise<void>
}

const CHAT = '/v1/chat/completions'
const question = 'How often should I water thyme on a dry balcony?'
/** Makes the mock model stream a token every 10 ms. */
const slowAnswer = '[[tokens:40]][[delay:10]] Describe how to water thyme.'
const UPLOAD_BYTES = 256 * 1024
/** Retries for requests that fail until the server has noticed the client's disconnect. */
const PATIENCE = { tries: 50, pauseMs: 20 }

function toChat(world: World, content: string, stream: boolean): Buffer {
  const body = { messages: [{ role: 'user', content }], ...(stream && { stream }) }
  return post(CHAT, world.agentKey, JSON.stringify(body))
}

function isEcho(body: unknown): boolean {
  const { choices } = body as { choices?: { message?: { content?: string } }[] }
  return choices?.[0]?.message?.content === `You said: ${question}`
}

function isReady(body: unknown): boolean {
  return (body as { state?: string }).state === 'ready'
}

export const actions: Readonly<Record<string, Action>> = {
  chat: {
    share: 40,
    async run(world) {
      await world.connections.exchange(toChat(world, question, false), new JsonSink(isEcho))
    },
  },
  stream: {
    share: 15,
    async run(world) {
      const { text } = await world.connections.exchange(toChat(world, slowAnswer, true), new TextSink())
      const isWhole = text.endsWith('data: [DONE]\n\n') && text.split('"content":"').length > 40
      if (!isWhole) throw new BenchFailure(`The stream is incomplete: …${text.slice(-200)}`)
    },
  },
  'stream, broken off': {
    share: 3,
    run: (world) => world.connections.breakOff(toChat(world, slowAnswer, true)),
  },
  'upload, interrupted and resumed': { share: 6, run: uploadInTwo },
  status: {
    share: 26,
    async run(world) {
      const request = toHead('GET', `/artifacts/${world.artifactId}/status`, world.target.key)
      await world.connections.exchange(request, new JsonSink(isReady))
    },
  },
  console: {
    share: 6,
    async run({ page, agentId }) {
      const [me, { data }, agent] = await Promise.all([
        page.manager.me.query(),
        page.agents.list.query({ limit: 20, include: 'last_used_on' }),
        page.agents.get.query({ agent_id: agentId }),
      ])
      const checked = await page.agents.check.mutate({ yaml: agentYaml })
      const isRight = me.agents === 20 && data.length === 20 && agent.agent_id === agentId
      if (!isRight || checked === undefined)
        throw new BenchFailure('The console received an unexpected answer.')
    },
  },
  'page load': {
    share: 4,
    async run({ connections, pagePaths }) {
      for (const path of pagePaths) {
        await connections.exchange(toHead('GET', path, '', 'accept-encoding: br\r\n'), new BytesSink(1))
      }
    },
  },
}

/** Disconnects in the middle of an upload, resumes it, and deletes it before it is complete. */
async function uploadInTwo({ target }: World): Promise<void> {
  const bytes = Buffer.alloc(UPLOAD_BYTES, 'parley ')
  // Declares one byte more than it sends, because a complete upload would be converted.
  const begun = await createUpload(target, { size: bytes.length + 1, metadata: { filename: 'a.mp4' } })
  const half = bytes.subarray(0, UPLOAD_BYTES / 2)
  await patchUpload(target, begun, 0, breakingAfter(half)).catch(() => {})
  let offset = await readOffset(target, begun)
  for (let tries = 0; offset < bytes.length; tries++) {
    const { status, headers } = await patchUpload(target, begun, offset, bytes.subarray(offset))
    if (status === 204) offset = Number(headers.get('upload-offset'))
    else if ((status === 423 || status === 409) && tries < PATIENCE.tries) {
      await wait(PATIENCE.pauseMs)
      offset = await readOffset(target, begun)
    } else throw new BenchFailure(`The upload did not resume: ${status}.`)
  }
  const { status } = await callUpload(target, 'DELETE', begun.location)
  if (status !== 204) throw new BenchFailure(`The upload was not deleted: ${status}.`)
}

function breakingAfter(bytes: Buffer): ReadableStream {
  let isSent = false
  return new ReadableStream({
    pull(controller) {
      if (isSent) controller.error(new Error('the client disconnected'))
      else controller.enqueue(bytes)
      isSent = true
    },
  })
}

/** Uploads an image, waits for its conversion, downloads it and deletes it. */
export async function convertPicture(world: World): Promise<void> {
  const metadata = { filename: 'a.png', kind: 'thumbnail' }
  const { id } = await uploadWhole(world.target, world.picture, { metadata })
  const bytes = await readArtifact(world.target, id)
  if (bytes.equals(world.picture)) throw new BenchFailure('The picture was not converted.')
  await removeArtifact(world, id)
}
