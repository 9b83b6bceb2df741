/** Tests how model policies store and validate `degrade`. */

import { describe, expect, test } from 'vitest'
import { FIRST, large, medium, pathOf, small, startDegrading } from '../../support/degrading-agent.ts'
import { createTypedClient } from '../../support/rpc.ts'

describe('`degrade` in a model policy', () => {
  test('is stored, returned, audited, and empty by default', async () => {
    const { app, id } = await startDegrading({})
    expect((await app.call('GET', pathOf(id))).body.degrade).toEqual([])
    const degrade = [
      { at: 50, to: medium },
      { at: 100, to: small },
    ]
    const put = await app.call('PUT', pathOf(id), { body: { degrade } })
    expect([put.status, put.body.degrade]).toEqual([200, degrade])
    const { body } = await app.call('PUT', pathOf(id), { body: put.body })
    expect(body.degrade).toEqual(degrade)
    const audit = await app.service.deps.db.selectFrom('audit_events').selectAll().execute()
    expect(audit.filter(({ details }) => details?.includes('"degrade":[{"at":50'))).toHaveLength(2)
    const written = await createTypedClient(app).agents.replaceModelPolicy.mutate({ agent_id: id })
    expect(written.degrade).toEqual([])
  })

  test('is empty in a policy that an earlier version has stored', async () => {
    const { app, id, ask } = await startDegrading()
    const { db, agents } = app.service.deps
    const earlier = { default_model: large, allowed_models: [], fallback_models: [], max_output_tokens: null }
    await db
      .updateTable('agents')
      .set({ model_policy: JSON.stringify(earlier) })
      .where('id', '=', id)
      .execute()
    agents.invalidate()
    expect((await app.call('GET', pathOf(id))).body.degrade).toEqual([])
    expect(await ask()).toEqual(FIRST)
  })

  test.each<[string, object[], string]>([
    ['a percentage of 0', [{ at: 0, to: small }], 'degrade[0].at'],
    ['a percentage above 100', [{ at: 101, to: small }], 'degrade[0].at'],
    ['a fraction', [{ at: 79.5, to: small }], 'degrade[0].at'],
    ['more than 3 steps', [10, 20, 30, 40].map((at) => ({ at, to: small })), 'degrade'],
    ['descending steps', [80, 50].map((at) => ({ at, to: small })), 'degrade[1].at'],
    ['equal steps', [80, 80].map((at) => ({ at, to: small })), 'degrade[1].at'],
    ['a model that is not allowed', [{ at: 80, to: medium }], 'degrade[0].to'],
    ['an unknown model', [{ at: 80, to: { ...small, model: 'gone' } }], 'degrade[0].to.model'],
    ['an unknown provider', [{ at: 80, to: { ...small, provider: 'gone' } }], 'degrade[0].to.provider'],
    ['no model', [{ at: 80 }], 'degrade[0].to'],
  ])('is rejected with %s', async (_what, degrade, param) => {
    const { app, id } = await startDegrading({})
    const body = { default_model: large, allowed_models: [large, small], degrade }
    const answer = await app.call('PUT', pathOf(id), { body })
    expect(answer.status).toBe(400)
    expect(answer.body.error).toContain(`${param}: `)
  })
})
