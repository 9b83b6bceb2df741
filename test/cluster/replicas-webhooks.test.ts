/** Tests that replicas share the delivery of events to webhooks. */
import { expect, test, vi } from 'vitest'
import type { TestApp } from '../support/app.ts'
import { storeChat } from '../support/conversations.ts'
import { createReplicaSettings, sharedStores, startReplicas } from '../support/replicas.ts'
import { storingAgent } from '../support/stored-chats.ts'
import { allowLoopback, createWebhook, deliverDue, startReceiver } from '../support/webhook-receiver.ts'

vi.setConfig({ testTimeout: 120_000 })

test.each(sharedStores)('two replicas that share %s deliver each event exactly once', async (store) => {
  const receiver = await startReceiver()
  const settings = await createReplicaSettings(store)
  const [first, second] = await startReplicas({ ...settings, ...allowLoopback })
  await createWebhook(first, { url: receiver.url, events: ['conversation.created'] })
  const { agent_id: agentId } = await first.createAgent(storingAgent())
  const knowsWebhook = async ({ service }: TestApp) => !(await service.deps.webhooks.find()).isEmpty
  await vi.waitFor(async () => expect(await knowsWebhook(second)).toBe(true), { timeout: 30_000 })
  const ids = await Promise.all(
    Array.from({ length: 20 }, (_, at) => storeChat(at % 2 === 0 ? first : second, agentId, 'hello')),
  )
  await Promise.all([deliverDue(first), deliverDue(second)])
  await vi.waitFor(() => expect(receiver.received.length).toBeGreaterThanOrEqual(20), { timeout: 30_000 })
  expect(receiver.received.map(({ body }) => body.data.conversation_id).sort()).toEqual(ids.sort())
})
