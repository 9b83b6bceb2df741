/** Tests that a restart ends a killed server's turns and keeps the text stored so far. */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, test, vi } from 'vitest'
import {
  checkContinuation,
  followResponse,
  listChatMessages,
  SLOW,
  startResponse,
} from '../support/interrupted-turns.ts'
import { startMcpHttpServer, withMcp } from '../support/mcp.ts'
import { callServer, eventually, makeFolder, startServer } from '../support/process.ts'
import { shareUpstream } from '../support/start-upstream.ts'
import {
  chatApi,
  completeEvents,
  createStoringAgent,
  dataOf,
  readStream,
  responsesApi,
  storingEnv,
} from '../support/stored-turns.ts'

vi.setConfig({ testTimeout: 120_000 })

const upstream = await shareUpstream()

async function startStoring(more: Readonly<Record<string, string>> = {}) {
  await upstream.clear()
  const folder = await makeFolder()
  const env = { ...storingEnv(upstream), ...more }
  const server = await startServer({ folder, env })
  return {
    server,
    parentKey: server.key as string,
    restart: () => startServer({ folder, env }),
    countStored: () => countStored(folder),
  }
}

/** Returns the number of events that are stored in the server's database. */
function countStored(folder: string): number {
  const db = new Sqlite(join(folder, 'data', 'conversations.db'), { readonly: true })
  try {
    const sum = 'select coalesce(sum(last_seq - first_seq + 1), 0) as events from turn_events'
    return db.prepare<[], { events: number }>(sum).get()?.events ?? 0
  } finally {
    db.close()
  }
}

describe('a server that was killed in the middle of an answer and restarted', () => {
  test('has stored the text received so far, which the model receives once when the client continues the response', async () => {
    const { server, parentKey, restart, countStored } = await startStoring()
    const { key } = await createStoringAgent(server.url, parentKey)
    const { id, whole } = await startResponse(server.url, key, SLOW, 'w300 ')
    await expect.poll(countStored, { timeout: 20_000 }).toBeGreaterThan(3)
    await server.crash()
    await whole
    const { url } = await restart()
    const { text } = await followResponse(url, key, id)
    expect(completeEvents(text).at(-1)).toContain('event: response.incomplete\n')
    expect(await listChatMessages(upstream)).toHaveLength(1)
    await checkContinuation(upstream, url, key, id)
  })

  test('reports the last stored event to a chat client', async () => {
    const { server, parentKey, restart, countStored } = await startStoring({ PARLEY_FLUSH_MS: '2000' })
    const { key } = await createStoringAgent(server.url, parentKey)
    const cut = await readStream(
      server.url,
      { path: chatApi.path, key, body: chatApi.body(SLOW) },
      (text) => {
        if (text.includes('w300 ') && countStored() > 0) server.kill('SIGKILL')
      },
    )
    await server.ended
    const events = completeEvents(cut.text)
    const { url } = await restart()
    const resume = (id: string | undefined) =>
      readStream(url, { path: chatApi.path, key, body: {}, headers: { 'Last-Event-ID': String(id) } })
    const lost = await resume(chatApi.idOf(events.at(-1) as string))
    expect(lost.status).toBe(409)
    const { error } = JSON.parse(lost.text)
    expect(error.code).toBe('event_not_kept')
    const [capability, number] = error.last_event_id.split('.')
    expect(chatApi.idOf(events[Number(number)] as string)).toBe(`${capability}.${number}`)
    expect((await resume(error.last_event_id)).text).toContain('stream_interrupted')
    expect(await listChatMessages(upstream)).toHaveLength(1)
  })
})

test('a tool that was running when the server was killed is not called again, and its outcome is reported to the model as unknown', async () => {
  const mcp = await startMcpHttpServer()
  const { server, parentKey, restart } = await startStoring(await withMcp({ near: { url: mcp.url } }))
  const { key } = await createStoringAgent(server.url, parentKey, { tools: ['echo', 'wait'] })
  // Until the server has listed the tools, it treats them as the client's tools.
  const readMe = async () => (await callServer(server.url, 'GET', '/v1/agents/me', key)).body
  const hasTools = async () => JSON.stringify(await readMe()).includes('Repeats the text.')
  expect(await eventually(hasTools, true)).toBe(true)
  const body = responsesApi.body('{{up:tool wait {}}}')
  const answer = readStream(server.url, { path: responsesApi.path, key, body: { ...body, background: true } })
  const readCalls = async () => (await mcp.seen()).calls.filter((name) => name === 'wait').length
  expect(await eventually(readCalls, 1)).toBe(1)
  await server.crash()
  const { text } = await answer
  const { url } = await restart()
  const { response } = dataOf(completeEvents(text)[0] as string)
  const readStatus = async () =>
    (await callServer(url, 'GET', `/v1/responses/${response.id}`, key)).body.status
  expect(await eventually(readStatus, 'incomplete')).toBe('incomplete')
  const more = { previous_response_id: response.id, input: 'Continue without the tool.' }
  const continued = await callServer(url, 'POST', '/v1/responses', key, more)
  expect(continued.body).toMatchObject({ status: 'completed' })
  const [first, second, ...rest] = await listChatMessages(upstream)
  expect(rest).toEqual([])
  expect(first?.some(({ role }) => role === 'tool')).toBe(false)
  expect(second?.filter(({ role }) => role === 'tool')).toMatchObject([
    { content: expect.stringContaining('the result is unknown') },
  ])
  expect(await readCalls()).toBe(1)
})
