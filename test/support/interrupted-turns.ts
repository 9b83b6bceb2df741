/** Starts responses whose server stops before the model has finished, and checks the stored text. */
import { expect } from 'vitest'
import { callServer } from './process.ts'
import type { SeenRequest, Upstream } from './start-upstream.ts'
import {
  chatApi,
  chunksText,
  completeEvents,
  dataOf,
  readStream,
  responsesApi,
  responseText,
  type StreamAnswer,
} from './stored-turns.ts'

const SLOW_CHUNKS = 3_000
/** A message that the model takes half a minute to answer. */
export const SLOW = `{{up:chunks ${SLOW_CHUNKS}}}{{up:delay 10}}`

/** Lists the chat requests that the provider has received, oldest first. */
export async function listChats(upstream: Upstream): Promise<SeenRequest[]> {
  return (await upstream.listRequests()).filter(({ path }) => path === chatApi.path)
}

/** Lists the messages of each chat request that the provider has received. */
export async function listChatMessages(upstream: Upstream): Promise<{ role: string; content: unknown }[][]> {
  const chats = await listChats(upstream)
  return chats.map(({ body }) => (body as { messages: { role: string; content: unknown }[] }).messages)
}

/** Starts a response; resolves with its id and the promise of its stream once the stream contains `text`. */
export async function startResponse(
  url: string,
  key: string,
  input: string,
  text: string,
  more: object = {},
) {
  const body = { ...responsesApi.body(input), ...more }
  let whole: Promise<StreamAnswer> | undefined
  const begun = await new Promise<string>((resolve) => {
    whole = readStream(url, { path: responsesApi.path, key, body }, (received) => {
      if (received.includes(text)) resolve(received)
    })
  })
  const { response } = dataOf(completeEvents(begun)[0] as string)
  return { id: response.id as string, whole: whole as Promise<StreamAnswer> }
}

/** Reads the stream of a response from its first event to its end. */
export function followResponse(url: string, key: string, id: string): Promise<StreamAnswer> {
  return readStream(url, { method: 'GET', path: `/v1/responses/${id}?stream=true`, key })
}

/**
 * Checks that the stored response to `SLOW` is a prefix of the model's text, and that a continuation sends
 * this prefix to the model once.
 */
export async function checkContinuation(upstream: Upstream, url: string, key: string, id: string) {
  const { body } = await callServer(url, 'GET', `/v1/responses/${id}`, key)
  expect(body).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'interrupted' } })
  const partial = responseText(body)
  expect(partial).toContain('w0 w1 ')
  expect(chunksText(SLOW_CHUNKS).startsWith(partial)).toBe(true)
  const { length: earlier } = await listChats(upstream)
  const more = { previous_response_id: id, input: [] }
  expect((await callServer(url, 'POST', '/v1/responses', key, more)).status).toBe(200)
  const chats = await listChatMessages(upstream)
  expect(chats).toHaveLength(earlier + 1)
  const answers = chats.at(-1)?.filter(({ role }) => role === 'assistant')
  expect(answers).toHaveLength(1)
  expect(JSON.stringify(answers).split(partial)).toHaveLength(2)
}
