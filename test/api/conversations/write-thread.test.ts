/** Tests how a server recovers when the thread that writes conversations to SQLite ends unexpectedly. */
import type { Worker } from 'node:worker_threads'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import type { HostTool } from '../../../src/server/service.ts'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { STORING } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { makeFolder } from '../../support/process.ts'
import {
  listItems,
  openConversations,
  openStream,
  resume,
  sendChat,
  splitStream,
} from '../../support/stored-chats.ts'
import { tool, toolCallResponse } from '../../support/tools.ts'

const harness = await startChatHarness()

/** Calls `onStart` for each thread that this process starts. */
function watchThreads(onStart: (thread: Worker) => void): () => void {
  process.on('worker', onStart)
  const stop = () => process.off('worker', onStart)
  onTestFinished(() => void stop())
  return stop
}

/**
 * Ends the thread when its reply to a batch satisfies `isLost`, so that the reply to the committed batch is
 * lost.
 */
function loseFirstAnswer(isLost: (value: unknown) => boolean): { answers: number; threads: number } {
  const lost = { answers: 0, threads: 0 }
  watchThreads((thread) => {
    lost.threads += 1
    const emit = thread.emit.bind(thread)
    thread.emit = (event: string | symbol, ...sent: unknown[]) => {
      const [answer] = sent as [{ results?: readonly { value?: unknown }[] }]
      const isBatch = event === 'message' && answer.results !== undefined
      if (lost.answers > 0 || !isBatch || !answer.results?.some(({ value }) => isLost(value)))
        return emit(event as 'message', ...(sent as [unknown]))
      lost.answers += 1
      void thread.terminate()
      return true
    }
  })
  return lost
}

async function startKeeper(clock: Clock = systemClock, tools: Record<string, HostTool> = {}) {
  const app = await harness.start(
    { PARLEY_DATA_DIR: await makeFolder(), PARLEY_FLUSH_MS: '50' },
    { clock, tools },
  )
  const { agent_id: id, agent_key: key } = await app.createAgent(`${STORING}
tools: [${Object.keys(tools).join(', ')}]
`)
  return { app, key, model: `agent/${id}` }
}

const respond = (app: TestApp, model: string, more: object = {}) =>
  app.call('POST', '/v1/responses', { body: { model, input: 'Hello', ...more } })

describe.runIf(inject('database') === 'sqlite')('when the write thread ends unexpectedly', () => {
  test('a running turn continues and is stored completely', async () => {
    const threads: Worker[] = []
    watchThreads((thread) => threads.push(thread))
    const { app, key } = await startKeeper()
    await sendChat(app, 'Hello', { key })
    expect(threads.length).toBe(1)
    const stream = await openStream(app, '{{up:chunks 100}}{{up:delay 10}} Hello', { key })
    for (const count of [3, 20, 40, 60, 80]) {
      await stream.readEvents(count)
      await threads.at(-1)?.terminate()
    }
    const events = splitStream(await stream.readAll())
    expect(threads.length).toBeGreaterThan(1)
    const turn = stream.headers.get('x-parley-turn')
    expect((await app.call('GET', `/v1/turns/${turn}`)).body.status).toBe('completed')
    const first = events[0]?.id as string
    expect(splitStream((await resume(app, key, first)).text)).toEqual(events.slice(1))
  })

  test.each(['events', 'end'] as const)(
    'a batch with the %s of a turn is stored only once if the thread ends after the commit but before it reports it',
    async (what) => {
      const isLost = (value: unknown) =>
        Array.isArray(value) &&
        value.some(({ status }) => status === (what === 'end' ? 'completed' : undefined))
      const lost = loseFirstAnswer(isLost)
      const { app, key } = await startKeeper(systemClock, { look: tool(() => 'Nothing.') })
      // A tool starts only after its call is stored, so the server always stores a batch without the end
      // first.
      await harness.answerWith(toolCallResponse('streamed', [{ name: 'look' }]), 1)
      const stream = await openStream(app, '{{up:chunks 30}} Hello', { key })
      const events = splitStream(await stream.readAll())
      expect(lost).toEqual({ answers: 1, threads: 2 })
      const db = await openConversations(app)
      const turns = await db.selectFrom('turns').selectAll().execute()
      expect(turns).toMatchObject([{ status: 'completed' }])
      const segments = await db.selectFrom('turn_events').selectAll().orderBy('first_seq').execute()
      const numbers = segments.flatMap(({ first_seq, last_seq }) => [first_seq, last_seq + 1])
      expect([numbers[0], numbers.at(-1)]).toEqual([0, (turns[0]?.last_seq as number) + 1])
      for (let at = 1; at < numbers.length - 1; at += 2) expect(numbers[at]).toBe(numbers[at + 1])
      const types = ['message', 'function_call', 'function_call_output', 'message']
      expect((await listItems(app)).map(({ type }) => type)).toEqual(types)
      const conversations = await db.selectFrom('conversations').select(['turns', 'items']).execute()
      expect(conversations).toEqual([{ turns: 1, items: 4 }])
      expect(splitStream((await resume(app, key, events[0]?.id as string)).text)).toEqual(events.slice(1))
    },
  )

  test('a turn is stored even if the thread ends after it commits the turn but before it reports the commit', async () => {
    const lost = loseFirstAnswer((value) => value === undefined)
    const { app, model } = await startKeeper()
    const image_url = `data:image/png;base64,${'A'.repeat(40_000)}`
    const content = [{ type: 'input_image', image_url, detail: 'auto' }]
    const { status, headers } = await respond(app, model, { input: [{ role: 'user', content }] })
    expect([status, headers.get('x-parley-stored')]).toEqual([200, 'true'])
    expect(lost.answers).toBe(1)
    const turn = (await app.call('GET', `/v1/turns/${headers.get('x-parley-turn')}`)).body
    expect(turn.status).toBe('completed')
    const [conversation] = (await app.call('GET', '/v1/conversations')).body.data
    const items = await app.call('GET', `/v1/conversations/${conversation.id}/items?order=asc`)
    expect(items.body.data.map(({ role }: { role: string }) => role)).toEqual(['user', 'assistant'])
    expect(items.body.data[0].content[0].image_url).toBe(image_url)
  })

  test('a turn that must be stored runs even if the thread ends after it commits the turn but before it reports the commit', async () => {
    const lost = loseFirstAnswer((value) => value === undefined)
    const { app, model } = await startKeeper()
    const headers = { 'Idempotency-Key': 'once' }
    const send = () => app.call('POST', '/v1/responses', { body: { model, input: 'Hello' }, headers })
    const first = await send()
    expect([first.status, first.headers.get('x-parley-stored')]).toEqual([200, 'true'])
    expect(lost.answers).toBe(1)
    expect((await send()).body).toEqual(first.body)
  })

  test('the next turn is stored by a new thread', async () => {
    const threads: Worker[] = []
    watchThreads((thread) => threads.push(thread))
    const { app, model } = await startKeeper()
    const first = await respond(app, model)
    await threads[0]?.terminate()
    const second = await respond(app, model, { previous_response_id: first.body.id })
    expect([second.status, second.headers.get('x-parley-stored')]).toEqual([200, 'true'])
    expect(threads.length).toBe(2)
  })

  test('turns that need the store are rejected with 503, and others run unstored, while no thread can run', async () => {
    const threads: Worker[] = []
    watchThreads((thread) => threads.push(thread))
    const clock = createFakeClock()
    const { app, model } = await startKeeper(clock)
    const first = await respond(app, model)
    const stopEnding = watchThreads((thread) => void thread.terminate())
    await threads[0]?.terminate()
    const failed = await respond(app, model, { previous_response_id: first.body.id })
    expect([failed.status, failed.headers.get('retry-after')]).toEqual([503, '1'])
    expect(failed.body.error.message).toBe('The conversation store is unavailable; try again.')
    const unstored = await respond(app, model)
    expect([unstored.status, unstored.headers.get('x-parley-stored')]).toEqual([200, 'false'])
    expect((await app.call('GET', '/readyz')).body.status).toBe('degraded')
    // The delay before the next start has not passed, so no request starts a thread.
    expect(threads.length).toBe(2)

    stopEnding()
    clock.advance(10)
    const isReady = async () => {
      clock.advance(1)
      return (await app.call('GET', '/readyz')).body.status
    }
    await expect.poll(isReady).toBe('ready')
    const third = await respond(app, model, { previous_response_id: first.body.id })
    expect(third.headers.get('x-parley-stored')).toBe('true')
  })
})
