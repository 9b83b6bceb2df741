/** Tests that all replicas use a price that an administrator changes on one of them, without a restart. */
import { expect, test, vi } from 'vitest'
import { asAdmin, root } from '../support/admin.ts'
import type { TestApp } from '../support/app.ts'
import { behindProxy } from '../support/console.ts'
import { createReplicaSettings, sharedStores, startReplicas } from '../support/replicas.ts'

vi.setConfig({ testTimeout: 120_000 })

test.each(sharedStores)(
  'a replica uses the price that another replica has set or deleted (%s)',
  async (store) => {
    const settings = await createReplicaSettings(store)
    const [first, second] = await startReplicas({ ...settings, ...behindProxy, PARLEY_ADMIN_EMAILS: root })
    const read = async ({ call }: TestApp) => {
      const { source, entry } = (await call('GET', '/v1/prices?model=mock')).body
      return [source, entry.per_million.input]
    }
    const waitFor = (app: TestApp, expected: unknown) =>
      vi.waitFor(async () => expect(await read(app)).toEqual(expected), { timeout: 30_000 })
    expect(await read(second)).toEqual(['free', '0'])
    for (const input of ['1.5', '2']) {
      const body = { per_million: { input } }
      expect((await asAdmin(first, 'PUT', '/prices/mock/mock', { body })).status).toBe(200)
      expect(await read(first)).toEqual(['override', input])
      await waitFor(second, ['override', input])
    }
    await asAdmin(second, 'DELETE', '/prices/mock/mock')
    await waitFor(first, ['free', '0'])
  },
)
