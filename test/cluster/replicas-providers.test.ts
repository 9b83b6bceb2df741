/** Tests that all replicas use a provider that an administrator changes on one of them, without a restart. */
import { expect, test, vi } from 'vitest'
import { asAdmin, root } from '../support/admin.ts'
import type { TestApp } from '../support/app.ts'
import { chatRequest } from '../support/chat-harness.ts'
import { behindProxy } from '../support/console.ts'
import { createReplicaSettings, sharedStores, startReplicas } from '../support/replicas.ts'
import { shareUpstream } from '../support/start-upstream.ts'

vi.setConfig({ testTimeout: 120_000 })

const API_KEY = 'sk-test-0123456789-abcd'

test.each(sharedStores)(
  'a replica uses the providers that another replica has added, changed or deleted (%s)',
  async (store) => {
    const upstream = await shareUpstream()
    await upstream.script('/v1/models', '{{up:body {"object":"list","data":[{"id":"large"}]}}}')
    const settings = await createReplicaSettings(store)
    const [first, second] = await startReplicas({ ...settings, ...behindProxy, PARLEY_ADMIN_EMAILS: root })
    const ask = async ({ call }: TestApp) =>
      (await call('POST', '/v1/chat/completions', { body: chatRequest('hello', { model: 'large' }) })).status
    const listKeys = async () =>
      (await upstream.listRequests())
        .filter(({ path }) => path === '/v1/chat/completions')
        .map(({ headers }) => headers.authorization)
    expect(await ask(second)).toBe(404)
    const body = { name: 'near', base_url: upstream.url, api_key: API_KEY }
    expect((await asAdmin(first, 'POST', '/providers', { body })).status).toBe(201)
    expect(await ask(first)).toBe(200)
    await vi.waitFor(async () => expect(await ask(second)).toBe(200), { timeout: 30_000 })
    expect(new Set(await listKeys())).toEqual(new Set([`Bearer ${API_KEY}`]))
    const changed = { base_url: upstream.url, api_key: `${API_KEY}-2` }
    await asAdmin(second, 'PUT', '/providers/near', { body: changed })
    await vi.waitFor(
      async () => {
        await ask(first)
        expect((await listKeys()).at(-1)).toBe(`Bearer ${API_KEY}-2`)
      },
      { timeout: 30_000 },
    )
    await asAdmin(second, 'DELETE', '/providers/near')
    await vi.waitFor(async () => expect(await ask(first)).toBe(404), { timeout: 30_000 })
  },
)
