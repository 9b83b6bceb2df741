/** Tests the `webhooks` commands with a running server. */
import { expect, test, vi } from 'vitest'
import { runCommandInProcess } from '../support/command.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'
import { startReceiver, verify } from '../support/webhook-receiver.ts'

vi.setConfig({ testTimeout: 60_000 })

test('the `webhooks` commands create, list, test and delete webhooks, to which the server delivers events', async () => {
  const folder = await makeFolder()
  const env = { PARLEY_WEBHOOK_ALLOW: '127.0.0.1' }
  const server = await startServer({ folder, env })
  const receiver = await startReceiver()
  const parley = (...words: string[]) => runCommandInProcess(['webhooks', ...words], { folder, env })
  const created = await parley('create', receiver.url, '--events', 'conversation.created', '--json')
  const { id, secret } = JSON.parse(created.stdout)
  const listed = await parley('list')
  expect(listed.stdout).toMatch(new RegExp(`ID +STATE +URL +EVENTS +AGENT +CREATED\n${id} +enabled +http`))
  const tested = await parley('test', id)
  expect([tested.code, tested.stdout]).toEqual([0, 'delivered (status 204)\n'])
  verify(secret, receiver.received[0] as never)
  receiver.status = 500
  const failed = await parley('test', id)
  expect([failed.code, failed.stdout]).toEqual([1, 'failed: The receiver responded with 500.\n'])
  receiver.status = 204
  await vi.waitFor(
    async () => {
      await callServer(server.url, 'POST', '/v1/conversations', server.key, {})
      expect(receiver.received.map(({ body }) => body.type)).toContain('conversation.created')
    },
    { timeout: 30_000, interval: 500 },
  )
  expect((await parley('delete', id)).stderr).toContain('add --yes to confirm')
  expect((await parley('delete', id, '--yes')).stdout).toBe(`deleted ${id}\n`)
  expect(JSON.parse((await parley('list', '--json')).stdout)).toEqual([])
  const wrong = await parley('create', 'https://127.0.0.2/', '--events', 'conversation.created')
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('url: must not be a private')])
})
