/** Tests the bin, from which agents can be restored for 30 days. */
import { describe, expect, test } from 'vitest'
import { purgeBin } from '../../../src/agents/bin.ts'
import { createTenant } from '../../support/agents.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { auditRowsOf } from '../../support/audit.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

const NOW = 1_800_000_000
const DAY = 86_400

const toBin = (app: TestApp, id: string) => app.call('POST', `/v1/agents/${id}/bin`)
const restore = (app: TestApp, id: string) => app.call('POST', `/v1/bin/agents/${id}/restore`)
const deleteForever = (app: TestApp, id: string) => app.call('DELETE', `/v1/bin/agents/${id}`)
const listBin = async (app: TestApp) => (await app.call('GET', '/v1/bin/agents')).body.data
const validate = async (app: TestApp, key: string) =>
  (await app.call('GET', '/v1/keys/validate', { key })).status

describe('an agent in the bin', () => {
  test('looks deleted to clients, and its key is rejected', async () => {
    const app = await startApp()
    const { agent_id: id, agent_key: key } = await app.createAgent()
    expect(await validate(app, key)).toBe(200)
    expect((await toBin(app, id)).body).toMatchObject({ id, binned: true })
    expect(await validate(app, key)).toBe(401)
    expect((await app.call('GET', '/v1/agents')).body.data).toEqual([])
    const path = `/v1/agents/${id}`
    const yaml = 'name: Other\ninstructions: Help.\n'
    const statuses = await Promise.all([
      app.call('GET', path),
      app.call('PUT', path, { body: { yaml } }),
      app.call('DELETE', path),
      app.call('GET', `${path}/versions`),
      app.call('GET', `${path}/model-policy`),
      app.call('POST', `${path}/rotate-key`),
      toBin(app, id),
    ])
    expect(statuses.map(({ status }) => status)).toEqual(statuses.map(() => 404))
  })

  test('is listed with the time it was binned and the time it will be permanently deleted', async () => {
    const app = await startApp({}, { clock: createFakeClock(NOW) })
    const { agent_id: id } = await app.createAgent()
    await toBin(app, id)
    const times = { created_at: NOW, binned_at: NOW, purge_at: NOW + 30 * DAY }
    expect(await listBin(app)).toEqual([{ id, name: 'Greeter', ...times }])
  })

  test('is restored with its id, its key and its versions', async () => {
    const app = await startApp()
    const { agent_id: id, agent_key: key } = await app.createAgent()
    await app.call('PUT', `/v1/agents/${id}`, { body: { yaml: 'name: Second\ninstructions: Help.\n' } })
    await toBin(app, id)
    expect((await restore(app, id)).body).toEqual({ id, restored: true })
    expect(await validate(app, key)).toBe(200)
    expect((await app.call('GET', `/v1/agents/${id}`)).body.definition.name).toBe('Second')
    expect((await app.call('GET', `/v1/agents/${id}/versions`)).body.data).toHaveLength(2)
    expect(await listBin(app)).toEqual([])
    expect((await restore(app, id)).status).toBe(404)
  })

  test('can be deleted permanently, and the deletion cannot be undone', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    expect((await deleteForever(app, id)).status).toBe(404)
    await toBin(app, id)
    expect((await deleteForever(app, id)).body).toEqual({ id, deleted: true })
    expect(await listBin(app)).toEqual([])
    expect((await restore(app, id)).status).toBe(404)
  })

  test('is deleted after 30 days, but not earlier', async () => {
    const clock = createFakeClock(NOW)
    const app = await startApp({}, { clock })
    const { agent_id: id } = await app.createAgent()
    await toBin(app, id)
    const { deps } = app.service
    const purge = (now: number) =>
      purgeBin({ ...deps, clock: createFakeClock(now) }, new AbortController().signal)
    expect(await purge(NOW + 30 * DAY - 1)).toBe(0)
    expect(await listBin(app)).toHaveLength(1)
    const rows = await auditRowsOf(app, async () => expect(await purge(NOW + 30 * DAY)).toBe(1))
    expect(rows).toMatchObject([{ action: 'agent.delete', actor_kind: 'service', target_id: id }])
    expect(await listBin(app)).toEqual([])
  })

  test('does not count toward the agent limit, but the bin has the same limit', async () => {
    const app = await startApp({ PARLEY_MAX_AGENTS: '1' })
    const { agent_id: first } = await app.createAgent()
    await toBin(app, first)
    const { agent_id: second } = await app.createAgent()
    const full = await restore(app, first)
    expect([full.status, full.body.error]).toEqual([413, expect.stringContaining('the limit is 1')])
    const refused = await toBin(app, second)
    expect([refused.status, refused.body.error]).toEqual([
      413,
      expect.stringContaining('The bin already contains 1'),
    ])
    await deleteForever(app, first)
    expect((await toBin(app, second)).status).toBe(200)
  })

  test('has an audit entry for each move to the bin, restoration and permanent deletion', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    const rows = await auditRowsOf(app, async () => {
      await toBin(app, id)
      await restore(app, id)
      await toBin(app, id)
      await deleteForever(app, id)
    })
    const actions = ['agent.bin', 'agent.restore', 'agent.bin', 'agent.delete']
    expect(rows.map(({ action }) => action)).toEqual(actions)
    expect(rows[0]?.target_id).toBe(id)
    expect(JSON.parse(String(rows[0]?.details))).toEqual({ name: 'Greeter', version: 1 })
  })

  test('cannot be listed, restored or deleted with a different parent key', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    await toBin(app, id)
    const other = await createTenant(app)
    const asOther = { key: other }
    expect((await app.call('GET', '/v1/bin/agents', asOther)).body.data).toEqual([])
    expect((await app.call('POST', `/v1/bin/agents/${id}/restore`, asOther)).status).toBe(404)
    expect((await app.call('DELETE', `/v1/bin/agents/${id}`, asOther)).status).toBe(404)
  })
})
