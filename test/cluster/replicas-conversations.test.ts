/**
 * Tests stored turns on two replicas: readers, cancellation, killed and paused replicas, and concurrent
 * clients.
 */
import OpenAI from 'openai'
import pg from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  checkContinuation,
  followResponse,
  listChats,
  SLOW,
  startResponse,
} from '../support/interrupted-turns.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'
import { startRedis } from '../support/redis.ts'
import { createReplicaSettings, type SharedStore, sharedStores } from '../support/replicas.ts'
import { shareUpstream } from '../support/start-upstream.ts'
import {
  chatApi,
  chunksText,
  completeEvents,
  createStoringAgent,
  dataOf,
  readStream,
  responsesApi,
  responseText,
  storingEnv,
} from '../support/stored-turns.ts'

// Starting processes is slow, and the tests wait for leases to expire.
vi.setConfig({ testTimeout: 180_000 })

const upstream = await shareUpstream()

/** Starts two replicas in separate processes; their agent stores its conversations. */
async function startStoringReplicas(store: SharedStore, more: Readonly<Record<string, string>> = {}) {
  await upstream.clear()
  const folder = await makeFolder()
  const shared = await createReplicaSettings(store)
  const env = { ...shared, ...storingEnv(upstream), PARLEY_DATA_DIR: `${folder}/data`, ...more }
  const one = await startServer({ folder, env })
  const other = await startServer({ folder, env })
  const parentKey = shared.PARLEY_PARENT_KEY as string
  const agent = await createStoringAgent(one.url, parentKey)
  return { one, other, parentKey, agent, key: agent.key, databaseUrl: shared.DATABASE_URL as string }
}

/** Starts a response; returns its id when it has begun, and a function that disconnects its client. */
function openResponse(url: string, key: string, input: string): Promise<{ id: string; stop: () => void }> {
  return new Promise((resolve) => {
    const request = { path: responsesApi.path, key, body: responsesApi.body(input) }
    void readStream(url, request, (text, stop) => {
      const [created] = completeEvents(text)
      if (created !== undefined) resolve({ id: dataOf(created).response.id, stop })
    })
  })
}

function follow(url: string, key: string, id: string, onText?: Parameters<typeof readStream>[2]) {
  return readStream(url, { method: 'GET', path: `/v1/responses/${id}?stream=true`, key }, onText)
}

/** Reads all rows of the turns, their events and their items. */
async function dumpTurns(databaseUrl: string): Promise<string> {
  const client = new pg.Client(databaseUrl)
  await client.connect()
  try {
    const tables = ['conversations', 'turns', 'turn_events', 'items']
    const dumps = []
    for (const table of tables) {
      const { rows } = await client.query(`select row_to_json(t)::text as row from ${table} t order by 1`)
      dumps.push([table, rows])
    }
    return JSON.stringify(dumps)
  } finally {
    await client.end()
  }
}

describe.each(sharedStores)('two replicas with %s', (store) => {
  test('return the same events for a running response, and either replica can cancel it', async () => {
    const { one, other, key } = await startStoringReplicas(store)
    const short = await startResponse(one.url, key, '{{up:chunks 300}}{{up:delay 5}}', 'w50 ')
    const [direct, followed] = await Promise.all([short.whole, followResponse(other.url, key, short.id)])
    expect(followed.status).toBe(200)
    expect(followed.text).toBe(direct.text)
    expect(completeEvents(followed.text).at(-1)).toContain('event: response.completed\n')

    const long = await startResponse(one.url, key, SLOW, 'w20 ')
    const [call] = (await listChats(upstream)).slice(-1)
    const cancelled = await callServer(other.url, 'POST', `/v1/responses/${long.id}/cancel`, key)
    expect(cancelled).toMatchObject({ status: 200, body: { status: 'cancelled' } })
    expect(await upstream.waitForEnd(call?.id as number)).toMatchObject({ endedBy: 'client' })
    const ended = await long.whole
    expect(completeEvents(ended.text).at(-1)).toContain('event: response.incomplete\n')
    expect((await followResponse(other.url, key, long.id)).text).toBe(ended.text)
  })

  test("can cancel and continue each other's turns by id", async () => {
    const { one, other, key, parentKey } = await startStoringReplicas(store)
    const { whole } = await startResponse(one.url, key, SLOW, 'w20 ')
    const list = (path: string) => callServer(other.url, 'GET', path, parentKey)
    const [conversation] = (await list('/v1/conversations')).body.data
    const [turn] = (await list(`/v1/conversations/${conversation.id}/turns`)).body.data
    const cancel = () => callServer(other.url, 'POST', `/v1/turns/${turn.id}/cancel`, key)
    expect(await cancel()).toMatchObject({ status: 200, body: { id: turn.id, status: 'cancelled' } })
    expect(completeEvents((await whole).text).at(-1)).toContain('event: response.incomplete\n')
    expect(await cancel()).toMatchObject({ status: 200, body: { status: 'cancelled' } })
    const continued = await callServer(other.url, 'POST', `/v1/turns/${turn.id}/continue`, key)
    expect(continued).toMatchObject({ status: 200, body: { object: 'response', status: 'completed' } })
    const [, { body } = { body: {} }] = await listChats(upstream)
    const { messages } = body as { messages: { content: string }[] }
    expect(messages.some(({ content }) => content.startsWith('w0 w1 '))).toBe(true)
  })

  test("end a killed replica's turns with the text stored so far, which a continuation sends to the model once", async () => {
    const { one, other, key } = await startStoringReplicas(store)
    const { id, whole } = await startResponse(one.url, key, SLOW, 'w99 ')
    const reader = followResponse(other.url, key, id)
    const request = { path: chatApi.path, key, body: chatApi.body(SLOW) }
    const chat = await readStream(one.url, request, (text) => {
      if (text.includes('w99 ')) one.kill('SIGKILL')
    })
    await Promise.all([one.ended, whole])
    const [first] = completeEvents(chat.text) as [string]
    const headers = { 'Last-Event-ID': chatApi.idOf(first) as string }
    const resumed = completeEvents((await readStream(other.url, { ...request, headers })).text)
    expect(resumed.at(-1)).toContain('"code":"stream_interrupted"')
    const text = [first, ...resumed.slice(0, -1)].map((event) => chatApi.textOf(event)).join('')
    expect(text).toContain('w0 w1 ')
    expect(chunksText(3000).startsWith(text)).toBe(true)
    expect(completeEvents((await reader).text).at(-1)).toContain('event: response.incomplete\n')
    expect(await listChats(upstream)).toHaveLength(2)
    await checkContinuation(upstream, other.url, key, id)
  })

  test('store no data from a replica that resumes after its lease has expired', async () => {
    const { one, other, key, databaseUrl } = await startStoringReplicas(store)
    const { id, whole } = await startResponse(one.url, key, SLOW, 'w99 ')
    const [call] = await listChats(upstream)
    one.kill('SIGSTOP')
    onTestFinished(() => one.kill('SIGCONT'))
    await followResponse(other.url, key, id)
    const before = await dumpTurns(databaseUrl)
    expect(before).toContain('interrupted')
    one.kill('SIGCONT')
    expect(await upstream.waitForEnd(call?.id as number)).toMatchObject({ endedBy: 'client' })
    expect(completeEvents((await whole).text).at(-1)).toContain('event: response.incomplete\n')
    expect((await one.stop()).code).toBe(0)
    expect(await dumpTurns(databaseUrl)).toBe(before)
  })

  test('keep a turn running while a client reads it from the other replica, and cancel it when the client disconnects', async () => {
    const { one, other, parentKey } = await startStoringReplicas(store, { PARLEY_RECONNECT_SECONDS: '2' })
    const { key } = await createStoringAgent(one.url, parentKey, { conversations: { keep: '1d' } })
    const request = { path: chatApi.path, key, body: chatApi.body(SLOW) }
    const left = await readStream(one.url, request, (text, stop) => {
      if (text.includes('w5 ')) stop()
    })
    const headers = { 'Last-Event-ID': chatApi.idOf(completeEvents(left.text)[0] as string) as string }
    // The events take longer than PARLEY_RECONNECT_SECONDS.
    const resumed = await readStream(other.url, { ...request, headers }, (text, stop) => {
      if (text.includes('w400 ')) stop()
    })
    expect(resumed.text).toContain('w400 ')
    const [call, ...more] = await listChats(upstream)
    expect(more).toEqual([])
    expect(await upstream.waitForEnd(call?.id as number)).toMatchObject({ endedBy: 'client' })
  })

  test('run one turn at a time for 64 clients of a conversation, and only one turn for 100 requests with the same idempotency key', async () => {
    const { one, other, parentKey, agent, key } = await startStoringReplicas(store)
    const created = await callServer(one.url, 'POST', '/v1/conversations', parentKey, {})
    expect(created.status).toBe(200)
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, index) => {
        const baseURL = `${(index % 2 === 0 ? one : other).url}/v1`
        const client = new OpenAI({ baseURL, apiKey: parentKey, maxRetries: 200 })
        const input = `{{up:slow-head 5}} number ${index}`
        return client.responses.create({ model: `agent/${agent.id}`, input, conversation: created.body.id })
      }),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 64 }, () => 'completed'))
    const calls = (await listChats(upstream)).toSorted((left, right) => left.beganAt - right.beganAt)
    expect(calls).toHaveLength(64)
    const overlapping = calls.filter((call, index) => call.beganAt < (calls[index - 1]?.endedAt ?? 0))
    expect(overlapping).toEqual([])

    await upstream.clear()
    const repeated = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        readStream((index % 2 === 0 ? one : other).url, {
          path: chatApi.path,
          key,
          body: chatApi.body('{{up:chunks 50}}{{up:delay 5}}'),
          headers: { 'Idempotency-Key': 'again' },
        }),
      ),
    )
    expect(new Set(repeated.map(({ text }) => text)).size).toBe(1)
    expect(repeated[0]?.text).toContain('[DONE]')
    expect(await listChats(upstream)).toHaveLength(1)
  })
})

test.each(sharedStores)(
  'with %s, a turn continues until its reader on another replica disconnects',
  async (store) => {
    const { one, other, parentKey } = await startStoringReplicas(store, { PARLEY_RECONNECT_SECONDS: '0' })
    const { key } = await createStoringAgent(one.url, parentKey, {
      conversations: { keep: '1d', onDisconnect: 'cancel' },
    })
    const { id, stop } = await openResponse(one.url, key, '{{up:chunks 1000}}{{up:delay 10}}')
    const whole = follow(other.url, key, id, (text) => {
      if (text.includes('w20 ')) stop()
    })
    expect(completeEvents((await whole).text).at(-1)).toContain('event: response.completed\n')

    const second = await openResponse(one.url, key, SLOW)
    await follow(other.url, key, second.id, (text, leave) => {
      if (text.includes('w20 ')) second.stop()
      if (text.includes('w400 ')) leave()
    })
    const [completed, left] = await listChats(upstream)
    expect(await upstream.waitForEnd(completed?.id as number)).toMatchObject({ endedBy: 'answer' })
    expect(await upstream.waitForEnd(left?.id as number)).toMatchObject({ endedBy: 'client' })
    const { body } = await callServer(other.url, 'GET', `/v1/responses/${second.id}`, key)
    expect(responseText(body)).toContain('w400 ')
  },
)

test('replicas return an error to all requests with one idempotency key if the turn fails before its first event', async () => {
  const { one, other, key } = await startStoringReplicas('PostgreSQL', { PARLEY_BACKEND_ATTEMPTS: '1' })
  const headers = { 'Idempotency-Key': 'once' }
  const request = {
    path: chatApi.path,
    key,
    body: chatApi.body('{{up:slow-head 4000}}{{up:status 500}}'),
    headers,
  }
  const first = readStream(one.url, request)
  await upstream.waitForRequest('slow-head')
  const answers = await Promise.all([
    first,
    ...[one, other, other].map(({ url }) => readStream(url, request)),
  ])
  expect(answers.map(({ status }) => status)).toEqual([502, 502, 502, 502])
  for (const { text } of answers) expect(JSON.parse(text).error.code).toBe('backend_error')
  expect(await listChats(upstream)).toHaveLength(1)
})

test('a turn continues for a reader on another replica while Redis is unavailable', async () => {
  const redis = await startRedis()
  const more = { REDIS_URL: redis.url, PARLEY_RECONNECT_SECONDS: '0' }
  const { one, other, parentKey } = await startStoringReplicas('PostgreSQL', more)
  const { key } = await createStoringAgent(one.url, parentKey, {
    conversations: { keep: '1d', onDisconnect: 'cancel' },
  })
  await redis.kill()
  const { id, stop } = await openResponse(one.url, key, '{{up:chunks 1000}}{{up:delay 10}}')
  const { text } = await follow(other.url, key, id, (received) => {
    if (received.includes('w20 ')) stop()
  })
  expect(completeEvents(text).at(-1)).toContain('event: response.completed\n')
})

test('a replica stops storing a response after another replica deletes it', async () => {
  const { one, other, parentKey, agent, databaseUrl } = await startStoringReplicas('PostgreSQL')
  const { body: conversation } = await callServer(one.url, 'POST', '/v1/conversations', parentKey, {})
  const more = { model: `agent/${agent.id}`, conversation: conversation.id }
  const { id, whole } = await startResponse(one.url, parentKey, `canary7733 ${SLOW}`, 'w99 ', more)
  const deleted = await callServer(other.url, 'DELETE', `/v1/responses/${id}`, parentKey)
  expect(deleted).toMatchObject({ status: 200, body: { id, deleted: true } })
  const [call] = await listChats(upstream)
  expect(await upstream.waitForEnd(call?.id as number)).toMatchObject({ endedBy: 'client' })
  await whole
  // Waits for the end of the turn on its replica, because the conversation is locked until then.
  const next = { ...more, input: 'next' }
  const answer = await callServer(one.url, 'POST', '/v1/responses', parentKey, next)
  expect(answer).toMatchObject({ status: 200, body: { status: 'completed' } })
  expect((await one.stop()).code).toBe(0)
  const dump = await dumpTurns(databaseUrl)
  expect(dump).toContain('next')
  for (const text of ['canary7733', 'w50 ', id]) expect(dump).not.toContain(text)
})

test('a replica aborts the model call of a turn without readers unless onDisconnect is continue or it is a background response', async () => {
  const { one, parentKey, key } = await startStoringReplicas('PostgreSQL', { PARLEY_RECONNECT_SECONDS: '1' })
  const cancelling = await createStoringAgent(one.url, parentKey, { conversations: { keep: '1d' } })
  const text = '{{up:chunks 500}}{{up:delay 10}}'
  const requests = [
    { path: chatApi.path, key: cancelling.key, body: chatApi.body(text) },
    { path: responsesApi.path, key: cancelling.key, body: responsesApi.body(text) },
    { path: chatApi.path, key, body: chatApi.body(text) },
    { path: responsesApi.path, key, body: responsesApi.body(text) },
    { path: responsesApi.path, key: cancelling.key, body: { ...responsesApi.body(text), background: true } },
  ]
  for (const request of requests)
    await readStream(one.url, request, (received, stop) => {
      if (received.includes('w5 ')) stop()
    })
  const calls = await listChats(upstream)
  const ends = await Promise.all(calls.map(({ id }) => upstream.waitForEnd(id)))
  expect(ends.map(({ endedBy }) => endedBy)).toEqual(['client', 'client', 'answer', 'answer', 'answer'])
})
