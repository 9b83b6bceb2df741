/**
 * Tests that clients receive each event of a stored answer exactly once, even if their connections are cut.
 */
import { describe, expect, test, vi } from 'vitest'
import { startAnswerCutter } from '../support/answer-cutter.ts'
import { makeFolder, startServer } from '../support/process.ts'
import { createRandom } from '../support/random.ts'
import { shareUpstream } from '../support/start-upstream.ts'
import {
  chatApi,
  completeEvents,
  createStoringAgent,
  dataOf,
  readStream,
  responsesApi,
  type StreamApi,
  type StreamRequest,
  storingEnv,
  summarize,
} from '../support/stored-turns.ts'

vi.setConfig({ testTimeout: 120_000 })

const upstream = await shareUpstream()
const CUTS = 200
const KEY = 'Idempotency-Key'

interface Client {
  readonly api: StreamApi
  readonly key: string
  readonly text: string
}

/** Returns the request that continues a stream after the events received so far, or the first request. */
type Next = (client: Client, events: readonly string[]) => StreamRequest

function first({ api, key, text }: Client): StreamRequest {
  return { path: api.path, key, body: api.body(text), headers: { [KEY]: 'one' } }
}

const nextChat: Next = (client, events) => {
  const id = events.length === 0 ? undefined : chatApi.idOf(events.at(-1) as string)
  if (id === undefined) return first(client)
  return { path: chatApi.path, key: client.key, body: {}, headers: { 'Last-Event-ID': id } }
}

const nextResponse: Next = (client, events) => {
  if (events.length === 0) return first(client)
  const { response } = dataOf(events[0] as string)
  const after = responsesApi.idOf(events.at(-1) as string)
  const path = `/v1/responses/${response.id}?stream=true&starting_after=${after}`
  return { method: 'GET', path, key: client.key }
}

async function readCut(url: string, client: Client, next: Next): Promise<string[]> {
  const events: string[] = []
  for (let tries = 0; tries < 10 * CUTS; tries++) {
    const { status, text } = await readStream(url, next(client, events))
    if (status !== undefined && status !== 200) throw new Error(`${status} ${text}`)
    events.push(...completeEvents(text))
    if (events.length > 0 && client.api.isLast(events.at(-1) as string)) return events
  }
  throw new Error('the stream did not end')
}

describe('a client whose connections are cut at random bytes', () => {
  test.each([
    ['chat completions with Last-Event-ID', chatApi, nextChat],
    ['responses with starting_after', responsesApi, nextResponse],
  ] as const)(
    'reads the same events as an uninterrupted client, and the model is called only once: %s',
    async (_, api, next) => {
      await upstream.clear()
      const folder = await makeFolder()
      const server = await startServer({ folder, env: storingEnv(upstream) })
      const { key } = await createStoringAgent(server.url, server.key as string)
      const random = createRandom(19)
      const cutter = await startAnswerCutter(server.url, () =>
        cutter.cuts < CUTS ? 350 + Math.floor(random() * 1_300) : Number.POSITIVE_INFINITY,
      )
      const words = Array.from({ length: 900 }, (_unused, index) => `Wörter-${index}-生命-🌱`).join(' ')
      const client: Client = { api, key, text: `{{up:delay 2}}{{up:text ${words}}}` }
      const [whole, cut] = await Promise.all([
        readStream(server.url, first(client)),
        readCut(cutter.url, client, next),
      ])
      expect(cutter.cuts).toBe(CUTS)
      const wanted = summarize(api, completeEvents(whole.text))
      expect(wanted.length).toBe(words.length)
      expect(summarize(api, cut)).toEqual(wanted)
      expect(cut).toEqual(completeEvents(whole.text))
      const calls = (await upstream.listRequests()).filter(({ path }) => path === chatApi.path)
      expect(calls).toHaveLength(1)
      expect(await server.stop()).toMatchObject({ code: 0 })
    },
  )
})
