/** Tests that all replicas measure the answers of a model in bytes after one of them has seen a violation. */
import { expect, test, vi } from 'vitest'
import { asAdmin, root } from '../support/admin.ts'
import { writeConfigFile } from '../support/config-file.ts'
import { behindProxy } from '../support/console.ts'
import { startHostileProvider } from '../support/hostile-provider.ts'
import { createReplicaSettings, sharedStores, startReplicas } from '../support/replicas.ts'
import { ownerOf, sendChat } from '../support/usage.ts'

vi.setConfig({ testTimeout: 120_000 })

test.each(sharedStores)(
  'a replica measures a model in bytes after another replica has seen a violation, until it is cleared (%s)',
  async (store) => {
    const provider = await startHostileProvider(() => ({ pieces: 10_000 }))
    const PARLEY_CONFIG = await writeConfigFile(`providers:\n  far: { url: ${provider.url} }\n`)
    const settings = { ...(await createReplicaSettings(store)), PARLEY_CONFIG }
    const [first, second] = await startReplicas({ ...settings, ...behindProxy, PARLEY_ADMIN_EMAILS: root })
    const scope = { type: 'key', id: ownerOf(first).tenantId }
    const body = { scope, period: 'day', limit: 1_000_000 }
    expect((await first.call('POST', '/v1/budgets', { body })).status).toBe(201)
    const answer = await sendChat(first, 'hi', { model: 'far/hostile', max_tokens: 100, stream: true })
    expect(answer.status).toBe(200)
    const meters = second.service.deps.meters
    await vi.waitFor(() => expect(meters.list()).toMatchObject([{ model: 'hostile' }]), { timeout: 30_000 })
    const limited = await sendChat(second, 'hi', { model: 'far/hostile', max_tokens: 100 })
    expect(limited.body.choices[0].message.content).toHaveLength(400)
    expect((await asAdmin(second, 'DELETE', '/model-meters/far/hostile')).status).toBe(200)
    await vi.waitFor(() => expect(first.service.deps.meters.list()).toEqual([]), { timeout: 30_000 })
  },
)
