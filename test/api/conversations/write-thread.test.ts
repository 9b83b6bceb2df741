/** Tests how a server recovers when the thread that writes conversations to SQLite ends unexpectedly. */
import type { Worker } from 'node:worker_threads'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { STORING } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { makeFolder } from '../../support/process.ts'
import { openStream, resume, sendChat, splitStream } from '../../support/stored-chats.ts'

const harness = await startChatHarness()

/** Calls `onStart` for each thread that this process starts. */
function watchThreads(onStart: (thread: Worker) => void): () => void {
  process.on('worker', onStart)
  const stop = () => process.off('worker', onStart)
  onTestFinished(() => void stop())
  return stop
}

async function startKeeper(clock: Clock = systemClock) {
  const app = await harness.start({ PARLEY_DATA_DIR: await makeFolder(), PARLEY_FLUSH_MS: '50' }, { clock })
  const { agent_id: id, agent_key: key } = await app.createAgent(STORING)
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
    // A second start would come too soon, so no request starts a thread.
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
