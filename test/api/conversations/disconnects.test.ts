/** Tests how long a stored response continues after its client has disconnected. */
import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { storingAgent } from '../../support/stored-chats.ts'

const harness = await startChatHarness()
const SLOW = '{{up:chunks 20}}{{up:delay 20}}'

async function start(onDisconnect: 'cancel' | 'continue') {
  const app = await harness.start({ PARLEY_RECONNECT_SECONDS: '0' })
  const { agent_key: key } = await app.createAgent(storingAgent({ onDisconnect }))
  return { app, key }
}

/** Disconnects once the model has received the request, or after a stream's first event. */
async function leave(app: TestApp, key: string, body: object): Promise<void> {
  const controller = new AbortController()
  const request = fetch(`${app.url}/v1/responses`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
    signal: controller.signal,
  })
  if ('stream' in body) await ((await request).body as ReadableStream).getReader().read()
  else await harness.upstream.waitForPath('/v1/chat/completions')
  controller.abort()
  await request.catch(() => {})
}

/** Waits until the provider's only chat request has ended; returns the reason, and the status of its turn. */
async function endOfTurn(app: TestApp) {
  const [chat] = await harness.listChats()
  const { endedBy } = await harness.upstream.waitForEnd(chat?.id ?? -1)
  const readStatus = async () => (await app.call('GET', '/v1/conversations')).body.data[0].parley.last_status
  await expect.poll(readStatus).not.toBe('in_progress')
  return [endedBy, await readStatus()]
}

describe.each([
  ['that is streamed', { stream: true }],
  ['that is not streamed', {}],
])('after its client disconnects, a stored response %s', (_what, more) => {
  test('is aborted with `onDisconnect: cancel`', async () => {
    const { app, key } = await start('cancel')
    await leave(app, key, { input: '{{up:hang-after 3}}', ...more })
    expect(await endOfTurn(app)).toEqual(['client', 'incomplete'])
  })

  test('continues to its end with `onDisconnect: continue`', async () => {
    const { app, key } = await start('continue')
    await leave(app, key, { input: SLOW, ...more })
    expect(await endOfTurn(app)).toEqual(['answer', 'completed'])
  })
})

test('a background response continues to its end without readers, even after a reader disconnects', async () => {
  const { app, key } = await start('cancel')
  await leave(app, key, { input: SLOW, background: true, stream: true })
  expect(await endOfTurn(app)).toEqual(['answer', 'completed'])
})
