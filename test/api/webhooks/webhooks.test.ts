/** Tests which callers can create, read and change webhooks, and which URLs are accepted. */
import { describe, expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { listAuditRows } from '../../support/audit.ts'
import { storeChat } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { openConversations, storingAgent } from '../../support/stored-chats.ts'
import { allowLoopback, createWebhook, deliverDue, startReceiver } from '../../support/webhook-receiver.ts'

const events = ['conversation.created']
const url = 'https://hooks.example.org/parley'
const problemOf = async (app: TestApp, body: object) => {
  const { status, body: answer } = await app.call('POST', '/v1/webhooks', { body })
  return [status, answer.error?.param, answer.error?.message]
}

describe('webhooks', () => {
  test('return their secret only when they are created', async () => {
    const app = await startApp()
    const created = await createWebhook(app, { url, events })
    expect(created.secret).toMatch(/^whsec_[\w+/]{43}=$/)
    const { secret, ...rest } = created
    const { body: read } = await app.call('GET', `/v1/webhooks/${created.id}`)
    expect(read).toEqual(rest)
    const { body: list } = await app.call('GET', '/v1/webhooks')
    expect(list).toEqual({ object: 'list', data: [rest] })
    const rows = await app.service.deps.db.selectFrom('webhooks').selectAll().execute()
    expect(JSON.stringify(rows)).not.toContain(secret.slice(6))
  })

  test("can be changed and deleted, and the audit log records both without the URL's path", async () => {
    const app = await startApp()
    const { id } = await createWebhook(app, { url, events })
    const changed = await app.call('PUT', `/v1/webhooks/${id}`, {
      body: { url: 'https://other.example.org/secret-path', events: ['turn.failed'], enabled: false },
    })
    expect(changed.body).toMatchObject({
      ...{ url: 'https://other.example.org/secret-path', events: ['turn.failed'] },
      ...{ state: 'disabled', disabled_reason: 'owner' },
    })
    const deleted = await app.call('DELETE', `/v1/webhooks/${id}`)
    expect(deleted.body).toEqual({ id, object: 'webhook.deleted', deleted: true })
    expect((await app.call('GET', `/v1/webhooks/${id}`)).status).toBe(404)
    const rows = (await listAuditRows(app)).filter(({ target_id }) => target_id === id)
    expect(rows.map(({ action }) => action)).toEqual(['webhook.create', 'webhook.update', 'webhook.delete'])
    expect(JSON.stringify(rows)).not.toContain('secret-path')
  })

  test('return 404 to other parent keys and receive only the events of the parent key that created them', async () => {
    const app = await startApp(allowLoopback)
    const receiver = await startReceiver()
    const { id } = await createWebhook(app, { url: receiver.url, events })
    const { agent_id: agentId } = await app.createAgent(storingAgent())
    await storeChat(app, agentId, 'hello')
    await deliverDue(app)
    const [delivery] = (await app.call('GET', `/v1/webhooks/${id}/deliveries`)).body.data
    const key = await createTenant(app)
    const calls = [
      ['GET', ''],
      ['PUT', '', { url, events }],
      ['DELETE', ''],
      ['POST', '/rotate-secret'],
      ['POST', '/test'],
      ['GET', '/deliveries'],
      ['POST', `/deliveries/${delivery.id}/retry`],
    ] as const
    for (const [method, path, body] of calls)
      expect([path, (await app.call(method, `/v1/webhooks/${id}${path}`, { key, body })).status]).toEqual([
        path,
        404,
      ])
    expect((await app.call('GET', '/v1/webhooks', { key })).body.data).toEqual([])
    const stranger = await app.call('POST', '/v1/webhooks', { key, body: { url, events, agent_id: agentId } })
    expect([stranger.status, stranger.body.error.param]).toEqual([400, 'agent_id'])
    const other = await startReceiver()
    await createWebhook(app, { url: other.url, events }, key)
    await storeChat(app, agentId, 'hello')
    await deliverDue(app)
    expect([other.received.length, receiver.received.length]).toEqual([0, 2])
  })

  test('are limited to 20 for each parent key', async () => {
    const app = await startApp()
    for (let at = 0; at < 20; at++) await createWebhook(app, { url, events })
    expect(await problemOf(app, { url, events })).toEqual([
      409,
      null,
      'There are already 20 webhooks; delete one first.',
    ])
  })

  test('cannot be created if the server forbids them', async () => {
    const app = await startApp({ PARLEY_WEBHOOKS: 'forbidden' })
    expect(await problemOf(app, { url, events })).toEqual([
      403,
      null,
      'This server does not allow webhooks (PARLEY_WEBHOOKS=forbidden).',
    ])
  })

  test('are deleted with their deliveries after their parent key is revoked', async () => {
    const clock = createFakeClock()
    const app = await startApp(allowLoopback, { clock })
    const receiver = await startReceiver()
    const key = await createTenant(app)
    const { agent_id: agentId } = await app.createAgent(storingAgent(), key)
    await createWebhook(app, { url: receiver.url, events }, key)
    const chat = { model: `agent/${agentId}`, messages: [{ role: 'user', content: 'hello' }] }
    await app.call('POST', '/v1/chat/completions', { key, body: chat })
    const { deps } = app.service
    await deps.db
      .updateTable('parent_keys')
      .set({ revoked_at: 1 })
      .where('id', '=', key.slice(4, 16))
      .execute()
    clock.advance(11)
    await deps.webhooks.find()
    await deliverDue(app)
    expect(await deps.db.selectFrom('webhooks').select('id').execute()).toEqual([])
    const db = await openConversations(app)
    expect(await db.selectFrom('webhook_deliveries').select('id').execute()).toEqual([])
  })
})

describe('the URL of a webhook', () => {
  test.each([
    ['http://hooks.example.org/', 'must start with https://'],
    ['ftp://hooks.example.org/', 'must start with https://'],
    ['https://hooks.example.org:8443/', 'must use port 443'],
    ['https://user@hooks.example.org/', 'must not contain a user name or a password'],
    ['https://hooks.example.org/#a', 'must not contain a fragment (#)'],
    ['hooks.example.org', 'must be a URL of at most 2000 characters, such as https://example.org/hook'],
  ])('%s is rejected, because it %s', async (given, problem) => {
    const app = await startApp()
    expect(await problemOf(app, { url: given, events })).toEqual([400, 'url', `url: ${problem}`])
  })

  test('is rejected if it contains a private address, in any notation', async () => {
    const app = await startApp({ PARLEY_RATE_LIMIT_PARENT: '0' })
    const failures: unknown[] = []
    for (const host of privateSpellings)
      failures.push((await problemOf(app, { url: `https://${host}/`, events }))[0])
    expect(privateSpellings).toHaveLength(40)
    expect(failures).toEqual(Array(40).fill(400))
  })
})

/** Loopback, private, link-local, metadata and other addresses that are not on the public Internet. */
const privateSpellings = [
  ...['127.0.0.1', '127.1', '127.0.1', '2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1', '017700000001'],
  ...['127.255.255.254', '0.0.0.0', '0', '10.0.0.1', '10.1', '0xa000001', '172.16.0.1', '172.31.255.255'],
  ...['192.168.0.1', '192.168.257', '0300.0250.0.1', '169.254.169.254', '0xa9fea9fe', '2852039166'],
  ...['100.64.0.1', '100.100.100.200', '192.0.0.192', '198.18.0.1', '224.0.0.1', '255.255.255.255'],
  ...[
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::ffff:a9fe:a9fe]',
    '[fe80::1]',
    '[fc00::1]',
  ],
  ...['[fd00:ec2::254]', '[64:ff9b::7f00:1]', 'localhost', 'a.localhost', '１２７.０.０.１'],
]
